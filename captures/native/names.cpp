// SPDX-License-Identifier: Apache-2.0
//
// The names of link types (https://www.tcpdump.org/linktypes.html) and protocols (IANA) for
// messages.
#include <array>
#include <cstdio>

#include "native/decode.hpp"

namespace nagi::captures {

namespace {

struct LinkType {
  std::uint32_t number;
  const char* name;
  bool is_read;
};
constexpr auto link_types = std::to_array<LinkType>({
    {0, "BSD loopback", true},
    {1, "Ethernet", true},
    {3, "AX.25", false},
    {6, "Token Ring", false},
    {7, "ARCNET", false},
    {8, "SLIP", false},
    {9, "PPP", true},
    {10, "FDDI", false},
    {11, "RFC 1483 ATM", true},
    {12, "raw IP", true},
    {14, "raw IP", true},
    {50, "PPP in HDLC framing", true},
    {51, "PPPoE", true},
    {100, "RFC 1483 ATM", true},
    {101, "raw IP", true},
    {104, "Cisco HDLC", true},
    {105, "IEEE 802.11", true},
    {107, "Frame Relay", false},
    {108, "OpenBSD loopback", true},
    {109, "IPsec (enc)", false},
    {113, "Linux cooked (SLL)", true},
    {114, "LocalTalk", false},
    {117, "OpenBSD pflog", false},
    {119, "IEEE 802.11 with Prism header", true},
    {122, "IP over Fibre Channel", false},
    {123, "SunATM", false},
    {127, "IEEE 802.11 with radiotap header", true},
    {138, "IP over IEEE 1394", true},
    {140, "SS7 MTP2", false},
    {141, "SS7 MTP3", false},
    {143, "DOCSIS", false},
    {147, "private use (USER0)", false},
    {163, "IEEE 802.11 with AVS header", true},
    {165, "BACnet MS/TP", false},
    {166, "PPP with direction", true},
    {177, "LAPD", false},
    {187, "Bluetooth HCI", false},
    {189, "USB (Linux)", false},
    {192, "PPI", true},
    {195, "IEEE 802.15.4", false},
    {197, "ERF", false},
    {201, "Bluetooth HCI with direction", false},
    {203, "LAPD", false},
    {204, "PPP with direction", true},
    {215, "IEEE 802.15.4 without PHY header", false},
    {219, "MPLS", true},
    {220, "USB (Linux, padded)", false},
    {227, "CAN (SocketCAN)", false},
    {228, "raw IPv4", true},
    {229, "raw IPv6", true},
    {230, "IEEE 802.15.4 without FCS", false},
    {231, "D-Bus", false},
    {239, "NFLOG", true},
    {247, "InfiniBand", false},
    {248, "SCTP", false},
    {249, "USB (USBPcap)", false},
    {251, "Bluetooth Low Energy", false},
    {252, "Wireshark upper PDU", false},
    {253, "Netlink", false},
    {256, "Bluetooth Low Energy with PHY header", false},
    {258, "PKTAP", false},
    {272, "DOCSIS", false},
    {276, "Linux cooked (SLL2)", true},
    {280, "Zigbee", false},
    {283, "IEEE 802.15.4 TAP", false},
});

struct Name {
  std::uint32_t number;
  const char* name;
};
constexpr auto ether_types = std::to_array<Name>({
    {0x0800, "IPv4"},
    {0x0806, "ARP"},
    {0x0842, "Wake-on-LAN"},
    {0x2000, "CDP"},
    {0x6002, "DEC MOP"},
    {0x6003, "DECnet"},
    {0x8035, "RARP"},
    {0x809b, "AppleTalk"},
    {0x80f3, "AppleTalk ARP"},
    {0x8137, "IPX"},
    {0x86dd, "IPv6"},
    {0x8808, "Ethernet flow control"},
    {0x8809, "LACP"},
    {0x8847, "MPLS"},
    {0x8848, "MPLS"},
    {0x8863, "PPPoE discovery"},
    {0x8864, "PPPoE"},
    {0x886c, "Broadcom"},
    {0x888e, "EAPOL"},
    {0x8892, "PROFINET"},
    {0x88a2, "ATA over Ethernet"},
    {0x88a4, "EtherCAT"},
    {0x88b8, "GOOSE"},
    {0x88cc, "LLDP"},
    {0x88e5, "MACsec"},
    {0x88e7, "802.1ah"},
    {0x88f7, "PTP"},
    {0x8902, "CFM"},
    {0x8906, "FCoE"},
    {0x8914, "FCoE initialization"},
    {0x8915, "RoCE"},
    {0x9000, "Ethernet loopback test"},
});
constexpr auto ip_protocols = std::to_array<Name>({
    {0, "IPv6 hop-by-hop"},
    {1, "ICMP"},
    {2, "IGMP"},
    {4, "IP-in-IP"},
    {6, "TCP"},
    {8, "EGP"},
    {9, "IGP"},
    {17, "UDP"},
    {33, "DCCP"},
    {41, "IPv6-in-IP"},
    {46, "RSVP"},
    {47, "GRE"},
    {50, "ESP"},
    {51, "AH"},
    {58, "ICMPv6"},
    {59, "no payload"},
    {88, "EIGRP"},
    {89, "OSPF"},
    {94, "IP-in-IP"},
    {97, "EtherIP"},
    {103, "PIM"},
    {112, "VRRP"},
    {115, "L2TP"},
    {132, "SCTP"},
    {136, "UDP-Lite"},
    {137, "MPLS-in-IP"},
});
constexpr auto ppp_protocols = std::to_array<Name>({
    {0x29, "AppleTalk over PPP"},
    {0x2b, "IPX over PPP"},
    {0x2d, "compressed TCP over PPP"},
    {0x2f, "TCP over PPP (Van Jacobson)"},
    {0x3d, "multilink PPP"},
    {0xfd, "compressed PPP"},
    {0x8021, "PPP IPCP"},
    {0x8057, "PPP IPv6CP"},
    {0x80fd, "PPP CCP"},
    {0xc021, "PPP LCP"},
    {0xc023, "PPP PAP"},
    {0xc025, "PPP LQR"},
    {0xc223, "PPP CHAP"},
    {0xc227, "PPP EAP"},
});
constexpr auto llc_services = std::to_array<Name>({
    {0x4242, "STP"},
    {0xaaaa, "SNAP"},
    {0xe0e0, "IPX"},
    {0xf0f0, "NetBIOS"},
    {0xfefe, "OSI"},
    {0xffff, "IPX"},
    {0x0404, "SNA"},
});
constexpr auto wifi_frames = std::to_array<Name>({
    {0, "802.11 management"},
    {1, "802.11 control"},
    {2, "802.11 data"},
    {3, "802.11"},
    {4, "802.11 encrypted"},
    {5, "802.11 null data"},
});

/// Return the name of a number, or `format` with the number if it has no name in the list.
template <std::size_t n>
std::string look_up(const std::array<Name, n>& names, std::uint32_t number, const char* format) {
  for (const Name& each : names) {
    if (each.number == number) return each.name;
  }
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), format, number);
  return text.data();
}

}  // namespace

std::string protocol_name(const LastHeader& header) {
  switch (header.kind) {
    case LastHeader::Kind::link_type:
      return link_type_name(header.number) + " frames";
    case LastHeader::Kind::ether_type:
      return look_up(ether_types, header.number, "Ethernet type 0x%04x");
    case LastHeader::Kind::llc:
      return look_up(llc_services, header.number, "LLC 0x%04x");
    case LastHeader::Kind::ppp:
      return look_up(ppp_protocols, header.number, "PPP protocol 0x%04x");
    case LastHeader::Kind::ip_protocol:
      return look_up(ip_protocols, header.number, "IP protocol %u");
    case LastHeader::Kind::wifi:
      return look_up(wifi_frames, header.number, "802.11 type %u");
    case LastHeader::Kind::nothing:
      break;
  }
  return "nothing known";
}

std::string link_type_name(std::uint32_t link_type) {
  for (const LinkType& each : link_types) {
    if (each.number == link_type) return each.name;
  }
  return "link type " + std::to_string(link_type);
}

bool is_decoded_link_type(std::uint32_t link_type) {
  for (const LinkType& each : link_types) {
    if (each.number == link_type) return each.is_read;
  }
  return false;
}

}  // namespace nagi::captures
