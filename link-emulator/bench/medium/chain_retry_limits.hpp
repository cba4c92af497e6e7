// SPDX-License-Identifier: Apache-2.0
//
// Retry limits of 802.11 stations in ns-3.
#pragma once

#include <cstdint>
#include <list>

#include "ns3/wifi-module.h"

namespace ns3_chain {

constexpr std::uint32_t max_failures = 25;  // ns-3 stores (31 + 1) x 2^failures slots in 32 bits

/// A station manager with constant rates and two retry limits: of failures before a CTS, and of
/// failures of DATA after a CTS. A frame is dropped at either limit, as in 802.11-2012 (9.3.4.4)
/// and ns-2. ns-3 3.44 has one limit for all failures.
class TwoRetryLimits : public ns3::ConstantRateWifiManager {
 public:
  static ns3::TypeId GetTypeId() {
    static ns3::TypeId id =
        ns3::TypeId("TwoRetryLimits")
            .SetParent<ns3::ConstantRateWifiManager>()
            .AddConstructor<TwoRetryLimits>()
            .AddAttribute("Short", "", ns3::UintegerValue(7),
                          ns3::MakeUintegerAccessor(&TwoRetryLimits::short_limit_),
                          ns3::MakeUintegerChecker<std::uint32_t>())
            .AddAttribute("Long", "", ns3::UintegerValue(4),
                          ns3::MakeUintegerAccessor(&TwoRetryLimits::long_limit_),
                          ns3::MakeUintegerChecker<std::uint32_t>())
            .AddAttribute("ResetsWindow", "of contention, when a frame is given up",
                          ns3::BooleanValue(true),
                          ns3::MakeBooleanAccessor(&TwoRetryLimits::resets_window_),
                          ns3::MakeBooleanChecker());
    return id;
  }
  void SetupMac(const ns3::Ptr<ns3::WifiMac> mac) override {
    ConstantRateWifiManager::SetupMac(mac);
    mac_ = mac;
    // ns-3 resets the window after FrameRetryLimit failures, even if no frame was dropped.
    if (resets_window_) mac->SetAttribute("FrameRetryLimit", ns3::UintegerValue(max_failures));
  }

 private:
  void DoReportRtsFailed(ns3::WifiRemoteStation*) override { ++short_; }
  void DoReportRtsOk(ns3::WifiRemoteStation*, double, ns3::WifiMode, double) override {
    short_ = 0;
    has_cts_ = true;
  }
  void DoReportDataFailed(ns3::WifiRemoteStation*) override {
    ++(has_cts_ ? long_ : short_);
    has_cts_ = false;
  }
  void DoReportDataOk(ns3::WifiRemoteStation*, double, ns3::WifiMode, double, ns3::MHz_u,
                      std::uint8_t) override {
    short_ = long_ = 0;
    has_cts_ = false;
  }
  std::list<ns3::Ptr<ns3::WifiMpdu>> DoGetMpdusToDropOnTxFailure(
      ns3::WifiRemoteStation*, ns3::Ptr<ns3::WifiPsdu> psdu) override {
    std::list<ns3::Ptr<ns3::WifiMpdu>> dropped;
    if (short_ < short_limit_ && long_ < long_limit_) return dropped;
    short_ = long_ = 0;
    for (const auto& mpdu : *ns3::PeekPointer(psdu)) dropped.push_back(mpdu);
    if (!resets_window_) return dropped;
    // ns-3 resets the window only if the failures exceed FrameRetryLimit.
    ns3::UintegerValue limit;
    mac_->GetAttribute("FrameRetryLimit", limit);
    mac_->SetAttribute("FrameRetryLimit", ns3::UintegerValue(1));
    ns3::Simulator::ScheduleNow(
        [mac = mac_, limit] { mac->SetAttribute("FrameRetryLimit", limit); });
    return dropped;
  }

  ns3::Ptr<ns3::WifiMac> mac_;
  std::uint32_t short_limit_ = 7;
  std::uint32_t long_limit_ = 4;
  bool resets_window_ = true;
  std::uint32_t short_ = 0;
  std::uint32_t long_ = 0;
  bool has_cts_ = false;
};

}  // namespace ns3_chain
