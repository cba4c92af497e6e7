// SPDX-License-Identifier: Apache-2.0
//
// One run in ns-3: a bulk transfer over a chain of links. `simulate SETTINGS` reads a JSON file
// that ns3_settings.py makes of nagi's plan and prints what came of it as JSON.
#include <cstdint>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

namespace {

using nlohmann::json;

constexpr std::uint16_t port = 5001;

/// What is measured on the way.
struct Observed {
  std::uint64_t received_bytes = 0;
  std::uint64_t before_bytes = 0;  // until the warm-up was over
  std::uint64_t retransmissions = 0;
  std::uint64_t losses = 0;  // of the sender's packets, in queues and on links
  std::uint64_t timeouts = 0;
  std::uint64_t reductions = 0;  // times that fast recovery began
  double rtt_sum_s = 0;
  std::uint64_t rtt_samples = 0;
  std::uint32_t window_bytes = 0;
  json windows = json::array();  // [s, packets, ssthresh in packets]
  std::uint32_t threshold_bytes = 0;
};

void set_up(const json& settings) {
  using namespace ns3;
  const json& tcp = settings.at("tcp");
  RngSeedManager::SetSeed(1);
  RngSeedManager::SetRun(settings.at("seed").get<std::uint64_t>() % 1'000'000'007);
  Config::SetDefault("ns3::TcpL4Protocol::SocketType",
                     TypeIdValue(TypeId::LookupByName(tcp.at("type").get<std::string>())));
  Config::SetDefault("ns3::TcpL4Protocol::RecoveryType",
                     TypeIdValue(TypeId::LookupByName(tcp.at("recovery").get<std::string>())));
  Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(tcp.at("sack").get<bool>()));
  Config::SetDefault("ns3::TcpSocketBase::MinRto",
                     TimeValue(NanoSeconds(tcp.at("min_rto_ns").get<std::int64_t>())));
  Config::SetDefault("ns3::TcpSocketBase::ClockGranularity", TimeValue(MilliSeconds(1)));
  Config::SetDefault("ns3::TcpSocket::SegmentSize",
                     UintegerValue(settings.at("payload_bytes").get<std::uint32_t>()));
  Config::SetDefault("ns3::TcpSocket::InitialCwnd",
                     UintegerValue(tcp.at("initial_window").get<std::uint32_t>()));
  Config::SetDefault("ns3::TcpSocket::DelAckCount",
                     UintegerValue(tcp.at("segments_an_ack").get<std::uint32_t>()));
  Config::SetDefault("ns3::TcpSocket::SndBufSize",
                     UintegerValue(tcp.at("buffer_bytes").get<std::uint32_t>()));
  Config::SetDefault("ns3::TcpSocket::RcvBufSize",
                     UintegerValue(tcp.at("buffer_bytes").get<std::uint32_t>()));
}

/// The hosts' and routers' links; returns the receiver's address.
ns3::Ipv4Address lay(const json& settings, ns3::NodeContainer& nodes, Observed& seen) {
  using namespace ns3;
  const json& hops = settings.at("hops");
  nodes.Create(static_cast<std::uint32_t>(hops.size()) + 1);
  InternetStackHelper().Install(nodes);
  Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.0");
  TrafficControlHelper control;
  const Callback<void, Ptr<const Packet>> lost([&seen](Ptr<const Packet>) { ++seen.losses; });
  Ipv4Address last;
  for (std::uint32_t index = 0; index < hops.size(); ++index) {
    NetDeviceContainer ends;
    for (const char* direction : {"there", "back"}) {
      const json& hop = hops[index].at(direction);
      const bool is_there = ends.GetN() == 0;
      if (is_there) {
        PointToPointHelper link;
        link.SetChannelAttribute("Delay", TimeValue(NanoSeconds(hop.at("delay_ns").get<long>())));
        ends = link.Install(nodes.Get(index), nodes.Get(index + 1));
      }
      const auto device = ends.Get(is_there ? 0 : 1)->GetObject<PointToPointNetDevice>();
      device->SetDataRate(DataRate(hop.at("rate_bps").get<std::uint64_t>()));
      const auto queue = CreateObject<DropTailQueue<Packet>>();
      queue->SetMaxSize(QueueSize(QueueSizeUnit::PACKETS, hop.at("queue_packets").get<unsigned>()));
      device->SetQueue(queue);
      if (is_there) queue->TraceConnectWithoutContext("Drop", lost);
      const double loss = hop.at("loss_probability").get<double>();
      if (loss > 0) {
        const auto errors = CreateObject<RateErrorModel>();
        errors->SetUnit(RateErrorModel::ERROR_UNIT_PACKET);
        errors->SetRate(loss);
        const auto other = ends.Get(is_there ? 1 : 0)->GetObject<PointToPointNetDevice>();
        other->SetReceiveErrorModel(errors);
        if (is_there) other->TraceConnectWithoutContext("PhyRxDrop", lost);
      }
    }
    const Ipv4InterfaceContainer given = addresses.Assign(ends);
    control.Uninstall(ends);  // the device's queue is the only one
    addresses.NewNetwork();
    last = given.GetAddress(1);
  }
  Ipv4GlobalRoutingHelper::PopulateRoutingTables();
  return last;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace ns3;
  if (argc != 2) {
    std::cerr << "simulate: give a file with settings\n";
    return 2;
  }
  json settings;
  try {
    std::ifstream file(argv[1]);
    settings = json::parse(file);
    set_up(settings);
  } catch (const json::exception& error) {
    std::cerr << "simulate: " << argv[1] << ": " << error.what() << "\n";
    return 2;
  }
  const Time warmup = NanoSeconds(settings.at("warmup_ns").get<std::int64_t>());
  const Time duration = NanoSeconds(settings.at("duration_ns").get<std::int64_t>());
  const std::uint32_t payload = settings.at("payload_bytes").get<std::uint32_t>();

  NodeContainer nodes;
  Observed seen;
  const Ipv4Address receiver = lay(settings, nodes, seen);
  const Address listening = InetSocketAddress(Ipv4Address::GetAny(), port);
  auto sinks =
      PacketSinkHelper("ns3::TcpSocketFactory", listening).Install(nodes.Get(nodes.GetN() - 1));
  BulkSendHelper bulk("ns3::TcpSocketFactory", InetSocketAddress(receiver, port));
  bulk.SetAttribute("SendSize", UintegerValue(64 * payload));
  auto sources = bulk.Install(nodes.Get(0));
  sinks.Start(Seconds(0));
  sources.Start(Seconds(0));
  sources.Stop(duration);

  const auto sink = DynamicCast<PacketSink>(sinks.Get(0));
  Simulator::Schedule(warmup, [&] { seen.before_bytes = sink->GetTotalRx(); });
  Simulator::Schedule(NanoSeconds(1), [&] {
    const auto socket =
        DynamicCast<TcpSocketBase>(DynamicCast<BulkSendApplication>(sources.Get(0))->GetSocket());
    socket->TraceConnectWithoutContext(
        "CongestionWindow",
        Callback<void, std::uint32_t, std::uint32_t>(
            [&seen](std::uint32_t, std::uint32_t now) { seen.window_bytes = now; }));
    socket->TraceConnectWithoutContext(
        "SlowStartThreshold",
        Callback<void, std::uint32_t, std::uint32_t>(
            [&seen](std::uint32_t, std::uint32_t now) { seen.threshold_bytes = now; }));
    socket->TraceConnectWithoutContext("LastRTT", Callback<void, Time, Time>([&](Time, Time now) {
                                         if (Simulator::Now() < warmup) return;
                                         seen.rtt_sum_s += now.GetSeconds();
                                         ++seen.rtt_samples;
                                       }));
    socket->TraceConnectWithoutContext(
        "CongState",
        Callback<void, TcpSocketState::TcpCongState_t, TcpSocketState::TcpCongState_t>(
            [&seen](TcpSocketState::TcpCongState_t, TcpSocketState::TcpCongState_t now) {
              seen.timeouts += now == TcpSocketState::CA_LOSS ? 1 : 0;
              seen.reductions += now == TcpSocketState::CA_RECOVERY ? 1 : 0;
            }));
    socket->TraceConnectWithoutContext(
        "Retransmission",
        Callback<void, Ptr<const Packet>, const TcpHeader&, const Address&, const Address&,
                 Ptr<const TcpSocketBase>>([&seen](auto...) { ++seen.retransmissions; }));
  });
  const Time every = NanoSeconds(settings.at("sample_ns").get<std::int64_t>());
  std::function<void()> sample = [&] {
    seen.windows.push_back({Simulator::Now().GetSeconds(),
                            static_cast<double>(seen.window_bytes) / payload,
                            static_cast<double>(seen.threshold_bytes) / payload});
    if (Simulator::Now() + every < duration) Simulator::Schedule(every, [&] { sample(); });
  };
  Simulator::Schedule(every, [&] { sample(); });

  Simulator::Stop(duration);
  Simulator::Run();
  const double seconds = (duration - warmup).GetSeconds();
  json result = {
      {"goodput_bps", static_cast<double>(sink->GetTotalRx() - seen.before_bytes) * 8 / seconds},
      {"retransmissions", seen.retransmissions},
      {"losses", seen.losses},
      {"timeouts", seen.timeouts},
      {"recoveries", seen.reductions},
      {"rtt_mean_s", seen.rtt_samples > 0
                         ? json(seen.rtt_sum_s / static_cast<double>(seen.rtt_samples))
                         : json()},
      {"windows", seen.windows}};
  Simulator::Destroy();
  std::cout << result.dump() << std::endl;
  return 0;
}
