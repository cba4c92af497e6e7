// SPDX-License-Identifier: Apache-2.0
//
// Runs one chain in ns-3: stations share an 802.11b channel, and UDP or TCP runs from the first
// station to the last. `chain SETTINGS` reads a JSON file that ns3_chain.py writes. It prints JSON:
// the goodput, and the kind and outcome of every frame at its receiver.
#include <cmath>
#include <cstdint>
#include <deque>
#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "chain_air.hpp"
#include "chain_retry_limits.hpp"
#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/mobility-module.h"
#include "ns3/network-module.h"
#include "ns3/propagation-module.h"
#include "ns3/traffic-control-module.h"
#include "ns3/wifi-module.h"

namespace ns3_chain {
namespace {

constexpr std::uint16_t port = 5001;
constexpr std::uint32_t send_buffer_bytes = 1'000'000;
struct Counts {
  std::uint64_t received_bytes = 0;
  std::vector<std::uint64_t> given_up, cts_timeouts, ack_timeouts;  // by station
  std::uint64_t retransmissions = 0;
  std::uint64_t timeouts = 0;
};

const char* kind_of(const ns3::WifiMacHeader& header) {
  if (header.IsRts()) return "RTS";
  if (header.IsCts()) return "CTS";
  if (header.IsAck()) return "ACK";
  return "DATA";
}

class Chain {
 public:
  explicit Chain(const json& settings)
      : settings_(settings), radio_(radio_of(settings)), air_(radio_) {
    set_up();
    build();
  }
  json run();

 private:
  static Radio radio_of(const json& settings) {
    const json& reach = settings.at("reach");
    Radio radio{reach.at("spacing_m"),
                reach.at("tx_power_dbm"),
                reach.at("path_loss_exponent"),
                reach.at("reference_loss_db"),
                reach.at("carrier_sense_dbm"),
                reach.at("noise_dbm"),
                std::nullopt,
                settings.at("has_propagation_delay")};
    if (!reach.at("capture_db").is_null()) radio.capture_db = reach.at("capture_db");
    return radio;
  }
  [[nodiscard]] std::uint64_t whole(const char* key) const { return settings_.at(key); }
  void set_up() const;
  void build();
  ns3::NetDeviceContainer install_wifi();
  void observe(ns3::NetDeviceContainer devices);
  void observe_tcp(ns3::Ptr<ns3::Application> sender);
  [[nodiscard]] bool is_measured() const { return ns3::Simulator::Now() >= warmup(); }
  [[nodiscard]] ns3::Time warmup() const { return ns3::NanoSeconds(whole("warmup_ns")); }

  const json& settings_;
  Radio radio_;
  Air air_;
  Counts counts_;
  ns3::NodeContainer nodes_;
  std::map<ns3::Mac48Address, std::size_t> stations_;
  ns3::Ipv4Address last_;
};

void Chain::set_up() const {
  using namespace ns3;
  RngSeedManager::SetSeed(1);
  RngSeedManager::SetRun(whole("seed"));
  Config::SetDefault("ns3::WifiMacQueue::MaxSize",
                     QueueSizeValue(QueueSize(PACKETS, settings_.at("queue_packets"))));
  Config::SetDefault("ns3::WifiMacQueue::MaxDelay", TimeValue(Seconds(100'000)));
  if (!settings_.contains("tcp")) return;
  const json& tcp = settings_.at("tcp");
  const UintegerValue buffer(tcp.at("receive_buffer_bytes").get<std::uint32_t>());
  Config::SetDefault("ns3::TcpL4Protocol::SocketType", StringValue("ns3::TcpNewReno"));
  Config::SetDefault("ns3::TcpL4Protocol::RecoveryType", StringValue("ns3::TcpPrrRecovery"));
  Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(false));
  // With scaling, a small window would end within a segment, which ns-3 then sends in two parts.
  const bool is_scaled = tcp.at("receive_buffer_bytes").get<std::uint32_t>() > 65'535;
  Config::SetDefault("ns3::TcpSocketBase::WindowScaling", BooleanValue(is_scaled));
  // Linux adds the greater of 200 ms and four deviations to the smoothed RTT. ns-3 adds the greater
  // of this granularity and four deviations.
  Config::SetDefault("ns3::TcpSocketBase::ClockGranularity",
                     TimeValue(NanoSeconds(tcp.at("min_rto_margin_ns").get<std::int64_t>())));
  Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(MilliSeconds(200)));
  Config::SetDefault("ns3::TcpSocket::ConnTimeout", TimeValue(Seconds(1)));
  Config::SetDefault("ns3::TcpSocket::SegmentSize",
                     UintegerValue(tcp.at("segment_bytes").get<std::uint32_t>()));
  Config::SetDefault("ns3::TcpSocket::InitialCwnd",
                     UintegerValue(tcp.at("initial_window").get<std::uint32_t>()));
  Config::SetDefault("ns3::TcpSocket::DelAckCount",
                     UintegerValue(tcp.at("segments_an_ack").get<std::uint32_t>()));
  // The send buffer must exceed any window, because ns-3 sends an incomplete segment if only a part
  // of a segment remains in its buffer.
  Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(send_buffer_bytes));
  Config::SetDefault("ns3::TcpSocket::RcvBufSize", buffer);
}

/// Make stations send ACKs at the rate `basic`. In ad hoc mode, ns-3 makes all mandatory rates
/// basic rates when a station first receives another, and then answers at the rate of DATA. This
/// function adds all stations before that.
void limit_basic_rates(const ns3::NetDeviceContainer& devices, ns3::WifiMode basic) {
  using namespace ns3;
  for (std::uint32_t index = 0; index < devices.GetN(); ++index) {
    const auto device = DynamicCast<WifiNetDevice>(devices.Get(index));
    const auto manager = device->GetRemoteStationManager();
    for (std::uint32_t other = 0; other < devices.GetN(); ++other) {
      if (other == index) continue;
      const auto address = Mac48Address::ConvertFrom(devices.Get(other)->GetAddress());
      for (const WifiMode& mode : device->GetPhy()->GetModeList()) {
        manager->AddSupportedMode(address, mode);
      }
      manager->RecordDisassociated(address);
    }
    manager->AddBasicMode(basic);
  }
}

ns3::NetDeviceContainer Chain::install_wifi() {
  using namespace ns3;
  const json& reach = settings_.at("reach");
  const auto value = [&reach](const char* key) { return DoubleValue(reach.at(key).get<double>()); };
  const auto loss = CreateObject<LogDistancePropagationLossModel>();
  loss->SetPathLossExponent(radio_.exponent);
  loss->SetReference(1, radio_.reference_loss_db);
  const auto delay = CreateObject<ConstantSpeedPropagationDelayModel>();
  // Without propagation delay, this speed makes the delay less than a nanosecond.
  delay->SetSpeed(radio_.has_delay ? light_m_s : 1e15);
  const auto channel = CreateObject<YansWifiChannel>();
  channel->SetPropagationLossModel(loss);
  channel->SetPropagationDelayModel(delay);

  YansWifiPhyHelper phy;
  phy.SetChannel(channel);
  phy.Set("TxPowerStart", value("tx_power_dbm"));
  phy.Set("TxPowerEnd", value("tx_power_dbm"));
  phy.Set("RxNoiseFigure", value("noise_figure_db"));
  // ns-3 ignores weaker signals also as interference. With this limit, all stations of the chain
  // count.
  phy.Set("RxSensitivity", DoubleValue(-200));
  phy.Set("CcaEdThreshold", value("carrier_sense_dbm"));
  phy.Set("CcaSensitivity", value("carrier_sense_dbm"));
  phy.SetPreambleDetectionModel("ns3::ThresholdPreambleDetectionModel", "MinimumRssi",
                                value("sensitivity_dbm"), "Threshold", value("preamble_db"));
  WifiMacHelper mac;
  mac.SetType("ns3::AdhocWifiMac", "QosSupported", BooleanValue(false));
  WifiHelper wifi;
  wifi.SetStandard(WIFI_STANDARD_80211b);
  const StringValue data(settings_.at("data_mode").get<std::string>());
  const StringValue control(settings_.at("control_mode").get<std::string>());
  const UintegerValue threshold(settings_.at("uses_rts").get<bool>() ? 0 : 65535);
  const json& limits = settings_.at("retry_limits");
  if (limits.is_null()) {
    wifi.SetRemoteStationManager("ns3::ConstantRateWifiManager", "DataMode", data, "ControlMode",
                                 control, "NonUnicastMode", control, "RtsCtsThreshold", threshold);
  } else {
    wifi.SetRemoteStationManager(
        TwoRetryLimits::GetTypeId().GetName(), "DataMode", data, "ControlMode", control,
        "NonUnicastMode", control, "RtsCtsThreshold", threshold, "Short",
        UintegerValue(limits.at("short").get<std::uint32_t>()), "Long",
        UintegerValue(limits.at("long").get<std::uint32_t>()), "ResetsWindow",
        BooleanValue(limits.at("resets_window").get<bool>()));
  }
  const NetDeviceContainer devices = wifi.Install(phy, mac, nodes_);
  if (settings_.at("has_basic_rate")) limit_basic_rates(devices, WifiMode(control.Get()));
  return devices;
}

void Chain::build() {
  using namespace ns3;
  nodes_.Create(settings_.at("hops").get<std::uint32_t>() + 1);
  MobilityHelper mobility;
  mobility.SetPositionAllocator("ns3::GridPositionAllocator", "DeltaX",
                                DoubleValue(radio_.spacing_m), "GridWidth",
                                UintegerValue(nodes_.GetN()));
  mobility.Install(nodes_);
  const NetDeviceContainer devices = install_wifi();
  InternetStackHelper().Install(nodes_);
  const Ipv4InterfaceContainer interfaces =
      Ipv4AddressHelper("10.0.0.0", "255.255.255.0").Assign(devices);
  TrafficControlHelper().Uninstall(devices);  // the queue of the device is the only one
  NeighborCacheHelper().PopulateNeighborCache(devices);
  const std::uint32_t stations = nodes_.GetN();
  Ipv4StaticRoutingHelper routing;
  for (std::uint32_t at = 0; at < stations; ++at) {
    const auto table = routing.GetStaticRouting(nodes_.Get(at)->GetObject<Ipv4>());
    table->RemoveRoute(1);  // the route to the network, by which all stations are neighbours
    for (std::uint32_t to = 0; to < stations; ++to) {
      if (to != at)
        table->AddHostRouteTo(interfaces.GetAddress(to),
                              interfaces.GetAddress(to > at ? at + 1 : at - 1), 1);
    }
  }
  last_ = interfaces.GetAddress(stations - 1);
  observe(devices);
}

void Chain::observe(ns3::NetDeviceContainer devices) {
  using namespace ns3;
  const std::uint32_t stations = devices.GetN();
  counts_.given_up.resize(stations);
  counts_.cts_timeouts.resize(stations);
  counts_.ack_timeouts.resize(stations);
  air_.measure_from(warmup());
  for (std::uint32_t index = 0; index < stations; ++index) {
    stations_[Mac48Address::ConvertFrom(devices.Get(index)->GetAddress())] = index;
  }
  for (std::uint32_t index = 0; index < stations; ++index) {
    const auto device = DynamicCast<WifiNetDevice>(devices.Get(index));
    const auto phy = device->GetPhy();
    phy->SetPostReceptionErrorModel(Create<CaptureThreshold>(air_, index));
    phy->TraceConnectWithoutContext(
        "PhyTxPsduBegin",
        Callback<void, WifiConstPsduMap, WifiTxVector, double>(
            [this, index, phy](WifiConstPsduMap all, WifiTxVector vector, double) {
              const auto psdu = all.begin()->second;
              const auto to = stations_.find(psdu->GetAddr1());
              const Time now = Simulator::Now();
              const Time takes = WifiPhy::CalculateTxDuration(psdu, vector, phy->GetPhyBand());
              air_.begin({index, to == stations_.end() ? stations_.size() : to->second,
                          kind_of(psdu->GetHeader(0)), (*psdu->begin())->GetPacket()->GetUid(), now,
                          now + takes});
            }));
    phy->GetState()->TraceConnectWithoutContext(
        "RxOutcome", Callback<void, Ptr<const WifiPpdu>, RxSignalInfo, const WifiTxVector&,
                              const std::vector<bool>&>(
                         [this, index](Ptr<const WifiPpdu> ppdu, RxSignalInfo, const WifiTxVector&,
                                       const std::vector<bool>& good) {
                           const auto psdu = ppdu->GetPsdu();
                           if (good.at(0))
                             air_.received(index, (*psdu->begin())->GetPacket()->GetUid());
                         }));
    const auto manager = device->GetRemoteStationManager();
    const auto count = [this, index, manager](const char* source,
                                              std::vector<std::uint64_t>& counts) {
      manager->TraceConnectWithoutContext(
          source, Callback<void, Mac48Address>([this, index, &counts](Mac48Address) {
            counts[index] += is_measured() ? 1 : 0;
          }));
    };
    count("MacTxRtsFailed", counts_.cts_timeouts);
    count("MacTxDataFailed", counts_.ack_timeouts);
    count("MacTxFinalRtsFailed", counts_.given_up);
    count("MacTxFinalDataFailed", counts_.given_up);
  }
}

void Chain::observe_tcp(ns3::Ptr<ns3::Application> sender) {
  using namespace ns3;
  const auto socket =
      DynamicCast<TcpSocketBase>(DynamicCast<BulkSendApplication>(sender)->GetSocket());
  socket->TraceConnectWithoutContext(
      "CongState", Callback<void, TcpSocketState::TcpCongState_t, TcpSocketState::TcpCongState_t>(
                       [this](TcpSocketState::TcpCongState_t, TcpSocketState::TcpCongState_t now) {
                         counts_.timeouts +=
                             is_measured() && now == TcpSocketState::CA_LOSS ? 1 : 0;
                       }));
  socket->TraceConnectWithoutContext(
      "Retransmission", Callback<void, Ptr<const Packet>, const TcpHeader&, const Address&,
                                 const Address&, Ptr<const TcpSocketBase>>(
                            [this](auto...) { counts_.retransmissions += is_measured() ? 1 : 0; }));
}

json Chain::run() {
  using namespace ns3;
  const Time duration = NanoSeconds(whole("duration_ns"));
  const bool is_tcp = settings_.contains("tcp");
  const char* factory = is_tcp ? "ns3::TcpSocketFactory" : "ns3::UdpSocketFactory";
  const Address listening = InetSocketAddress(Ipv4Address::GetAny(), port);
  auto sinks = PacketSinkHelper(factory, listening).Install(nodes_.Get(nodes_.GetN() - 1));
  ApplicationContainer sources;
  if (is_tcp) {
    BulkSendHelper bulk(factory, InetSocketAddress(last_, port));
    bulk.SetAttribute(
        "SendSize",
        UintegerValue(64 * settings_.at("tcp").at("segment_bytes").get<std::uint32_t>()));
    sources = bulk.Install(nodes_.Get(0));
    Simulator::Schedule(NanoSeconds(1), [this, &sources] { observe_tcp(sources.Get(0)); });
  } else {
    const json& udp = settings_.at("udp");
    OnOffHelper steady(factory, InetSocketAddress(last_, port));
    steady.SetConstantRate(DataRate(udp.at("payload_bps").get<std::uint64_t>()),
                           udp.at("payload_bytes").get<std::uint32_t>());
    sources = steady.Install(nodes_.Get(0));
  }
  sinks.Start(Seconds(0));
  sources.Start(Seconds(0));
  sources.Stop(duration);
  const auto sink = DynamicCast<PacketSink>(sinks.Get(0));
  std::uint64_t before = 0;
  Simulator::Schedule(warmup(), [&] { before = sink->GetTotalRx(); });
  Simulator::Stop(duration);
  Simulator::Run();
  const double seconds = (duration - warmup()).GetSeconds();
  json result = {{"goodput_bps", static_cast<double>(sink->GetTotalRx() - before) * 8 / seconds},
                 {"outcomes", air_.outcomes()},
                 {"given_up", counts_.given_up},
                 {"cts_timeouts", counts_.cts_timeouts},
                 {"ack_timeouts", counts_.ack_timeouts},
                 {"retransmissions", counts_.retransmissions},
                 {"timeouts", counts_.timeouts}};
  Simulator::Destroy();
  return result;
}

}  // namespace
}  // namespace ns3_chain

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "chain: give the path of a file with settings\n";
    return 2;
  }
  try {
    std::ifstream file(argv[1]);
    const nlohmann::json settings = nlohmann::json::parse(file);
    std::cout << ns3_chain::Chain(settings).run().dump() << std::endl;
  } catch (const nlohmann::json::exception& error) {
    std::cerr << "chain: " << argv[1] << ": " << error.what() << "\n";
    return 2;
  }
  return 0;
}
