//! Classifying addresses of the public internet: globally routable, and not of this machine, its network or its hosting
//! provider.
//!
//! Not covered: a local network's own prefix for translation to IPv4, and public addresses of this machine.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// IPv4 ranges that are not public, as address, length of the prefix, and what they are for.
const FOUR: &[([u8; 4], u32, &str)] = &[
    ([0, 0, 0, 0], 8, "of this host"),
    ([10, 0, 0, 0], 8, "private"),
    ([100, 64, 0, 0], 10, "of a carrier's internal network"),
    ([127, 0, 0, 0], 8, "loopback"),
    ([168, 63, 129, 16], 32, "of a cloud's internal service"),
    (
        [169, 254, 0, 0],
        16,
        "link-local, where clouds keep metadata",
    ),
    ([172, 16, 0, 0], 12, "private"),
    ([192, 0, 0, 0], 24, "reserved for a protocol"),
    ([192, 0, 2, 0], 24, "for documentation"),
    ([192, 88, 99, 0], 24, "reserved for a relay"),
    ([192, 168, 0, 0], 16, "private"),
    ([198, 18, 0, 0], 15, "for benchmarks"),
    ([198, 51, 100, 0], 24, "for documentation"),
    ([203, 0, 113, 0], 24, "for documentation"),
    ([224, 0, 0, 0], 4, "multicast"),
    ([240, 0, 0, 0], 4, "reserved"),
];

/// IPv6 ranges inside [`GLOBAL`] that are not public.
const SIX: &[([u16; 2], u32, &str)] = &[
    ([0x2001, 0], 23, "reserved for a protocol"),
    ([0x2001, 0xdb8], 32, "for documentation"),
    ([0x2002, 0], 16, "reserved for a relay"),
    ([0x3fff, 0], 20, "for documentation"),
];

/// The range of global unicast addresses of IPv6: 2000::/3.
const GLOBAL: u128 = 0b001;

/// The prefix by which networks translate to IPv4: 64:ff9b::/96.
const TRANSLATED: u128 = 0x64_ff9b << 64;

/// Whether an address belongs to the public internet.
#[must_use]
pub fn is_public(address: IpAddr) -> bool {
    judge(address).is_ok()
}

/// Returns the reason if an address is not public.
pub(super) fn judge(address: IpAddr) -> Result<(), &'static str> {
    match address {
        IpAddr::V4(four) => judge_four(four),
        IpAddr::V6(six) => judge_six(six),
    }
}

fn judge_four(address: Ipv4Addr) -> Result<(), &'static str> {
    let inside = |(base, length, _): &&([u8; 4], u32, &str)| {
        u32::from_be_bytes(*base) >> (u32::BITS - length)
            == address.to_bits() >> (u32::BITS - length)
    };
    FOUR.iter()
        .find(inside)
        .map_or(Ok(()), |(_, _, why)| Err(why))
}

fn judge_six(address: Ipv6Addr) -> Result<(), &'static str> {
    let bits = address.to_bits();
    // A mapped IPv4 address is judged as the IPv4 address.
    if let Some(four) = address.to_ipv4_mapped() {
        return judge_four(four);
    }
    if bits >> 32 == TRANSLATED {
        return judge_four(Ipv4Addr::from_bits(
            u32::try_from(bits & u128::from(u32::MAX)).unwrap_or_default(),
        ));
    }
    if address.is_loopback() {
        return Err("loopback");
    }
    if bits >> 125 != GLOBAL {
        return Err("not on the public internet");
    }
    let inside = |([one, two], length, _): &&([u16; 2], u32, &str)| {
        let base = u128::from(*one) << 112 | u128::from(*two) << 96;
        base >> (u128::BITS - length) == bits >> (u128::BITS - length)
    };
    SIX.iter()
        .find(inside)
        .map_or(Ok(()), |(_, _, why)| Err(why))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refused() {
        let table = "
            0.0.0.0 0.1.2.3 10.0.0.1 10.255.255.255 100.64.0.1 100.100.100.200 100.127.255.255 127.0.0.1 127.9.9.9
            168.63.129.16 169.254.0.1 169.254.169.254 169.254.170.2 172.16.0.1 172.31.255.255 192.0.0.1 192.0.0.192
            192.0.2.1 192.88.99.1 192.168.0.1 192.168.255.255 198.18.0.1 198.19.255.255 198.51.100.7 203.0.113.9
            224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255
            :: ::1 ::7f00:1 ::808:808 ::ffff:127.0.0.1 ::ffff:10.0.0.1 ::ffff:169.254.169.254 ::ffff:0:808:808
            64:ff9b::7f00:1 64:ff9b::a00:1 64:ff9b::a9fe:a9fe 64:ff9b:1::808:808 64:ff9b::1:808:808 100::1
            fc00::1 fd00::1 fd00:ec2::254 fe80::1 febf::1 fec0::1 ff02::1 ff0e::1 5f00::1 4000::1 1fff::1
            2001::1 2001:0:53aa:64c:0:7fff:a00:1 2001:2::1 2001:10::1 2001:20::1 2001:1ff::1 2001:db8::1
            2002:7f00:1::1 2002:808:808::1 3fff::1 3fff:fff::1";
        let mut judged = 0;
        for address in table.split_whitespace() {
            assert!(judge(address.parse().unwrap()).is_err(), "{address}");
            judged += 1;
        }
        assert!(judged >= 60, "{judged}");
    }

    #[test]
    fn public() {
        let table = "
            1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.0 93.184.216.34 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.1
            168.63.129.15 168.63.129.17 169.253.255.255 169.255.0.0 172.15.255.255 172.32.0.0 192.0.1.0 192.0.3.0
            192.88.98.1 192.167.255.255 192.169.0.0 198.17.255.255 198.20.0.0 198.51.99.1 203.0.112.1 223.255.255.255
            2000::1 2001:200::1 2001:4860:4860::8888 2001:db7::1 2001:db9::1 2003::1 2606:4700:4700::1111 3ffe::1
            3fff:1000::1 2a00:1450::1 ::ffff:8.8.8.8 64:ff9b::808:808";
        for address in table.split_whitespace() {
            assert_eq!(judge(address.parse().unwrap()), Ok(()), "{address}");
        }
    }
}
