package webhook

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"
)

// hostileAddresses must never be dialled, each for a reason of its own.
var hostileAddresses = []string{
	"0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255", "100.64.0.1", "100.127.255.255", // this network, private, carrier NAT
	"127.0.0.1", "127.0.0.53", "127.255.255.254", "169.254.169.254", "169.254.170.2", // loopback, cloud metadata
	"172.16.0.1", "172.31.255.255", "192.168.0.1", "192.168.255.255", // private
	"192.0.0.1", "192.0.0.192", "192.0.2.1", "198.51.100.1", "203.0.113.1", // protocol assignments, documentation
	"192.31.196.1", "192.52.193.1", "192.88.99.1", "192.175.48.1", "198.18.0.1", "198.19.255.255", // AS112, AMT, 6to4 relay, benchmarks
	"224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255", // multicast, reserved, broadcast
	"168.63.129.16",                                                                                         // Azure wire server
	"::", "::1", "::127.0.0.1", "::7f00:1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", // IPv4 in disguise
	"::ffff:168.63.129.16", "::ffff:0:127.0.0.1",
	"64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::1", "64:ff9b:1::a00:1", // NAT64
	"2002:7f00:1::", "2002:a00:1::1", "2002:c0a8:101::", // 6to4
	"2001::1", "2001:0:4136:e378:8000:63bf:3fff:fdd2", "2001:1::1", "2001:10::1", "2001:20::1", // Teredo, protocol assignments, ORCHID
	"2001:db8::1", "3fff::1", "2620:4f:8000::1", // documentation, AS112
	"fc00::1", "fd00:ec2::254", "fdff::1", "fe80::1", "fe80::a9fe:a9fe", "febf::1", "fec0::1", // unique local (AWS metadata), link and site local
	"ff02::1", "ff05::2", "ff0e::1", // multicast
	"100::1", "5f00::1", "4000::1", "1fff::1", "e000::1", // discard, SRv6, not global unicast
	"fe80::1%eth0", "2606:4700::1111%1", // zones
}

func TestHostileAddresses(t *testing.T) {
	t.Parallel()
	if len(hostileAddresses) < 60 {
		t.Fatalf("%d addresses", len(hostileAddresses))
	}
	for _, text := range hostileAddresses {
		ip := netip.MustParseAddr(text)
		if err := defaultGuard.checkAddress(netip.AddrPortFrom(ip, 443)); !errors.Is(err, ErrBlocked) {
			t.Errorf("%s: %v", text, err)
		}
		address := netip.AddrPortFrom(ip, 443).String()
		for _, network := range []string{"tcp4", "tcp6"} {
			if err := defaultGuard.control(context.Background(), network, address, nil); !errors.Is(err, ErrBlocked) || err.Error() != ErrBlocked.Error() {
				t.Errorf("%s %s: %v", network, address, err)
			}
		}
	}
}

func TestPublicAddresses(t *testing.T) {
	t.Parallel()
	for _, address := range []string{
		"1.1.1.1:443", "8.8.8.8:80", "93.184.215.14:8443", "100.63.255.255:443", "100.128.0.1:443", "172.15.0.1:443", "172.32.0.1:443",
		"168.63.129.15:443", "223.255.255.255:443", "[2606:4700:4700::1111]:443", "[2a00:1450:4001:80b::200e]:443", "[::ffff:1.1.1.1]:443",
	} {
		if err := defaultGuard.control(context.Background(), "tcp4", address, nil); err != nil {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func TestControlRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range [][2]string{
		{"tcp", "1.1.1.1:443"},
		{"udp4", "1.1.1.1:443"},
		{"unix", "/run/docker.sock"},
		{"ip4:icmp", "1.1.1.1"},
		{"tcp4", "1.1.1.1"},
		{"tcp4", "example.com:443"},
		{"tcp4", ""},
		{"tcp4", "1.1.1.1:99999"},
		{"tcp4", "1.1.1.1:22"},
		{"tcp4", "1.1.1.1:6379"},
		{"tcp4", "1.1.1.1:0"},
		{"tcp4", "1.1.1.1:8080"},
	} {
		if err := defaultGuard.control(context.Background(), c[0], c[1], nil); !errors.Is(err, ErrBlocked) {
			t.Errorf("%v: %v", c, err)
		}
	}
}

func TestAllowAndDeny(t *testing.T) {
	t.Parallel()
	g, err := NewGuard(GuardConfig{
		Ports: []uint16{9000, 443, 9000},
		Allow: []netip.Prefix{netip.MustParsePrefix("10.1.2.3/16"), netip.MustParsePrefix("::ffff:10.2.0.0/112"), netip.MustParsePrefix("fd12::/16")},
		Deny:  []netip.Prefix{netip.MustParsePrefix("10.1.9.9/32"), netip.MustParsePrefix("5.6.0.0/16"), netip.MustParsePrefix("2a01:4f8::/32")},
	})
	if err != nil {
		t.Fatal(err)
	}
	for address, want := range map[string]bool{
		"10.1.0.1:443": true, "10.1.0.1:9000": true, "10.2.0.1:443": true, "[::ffff:10.1.0.1]:443": true, "[fd12::1]:443": true,
		"1.1.1.1:9000": true, "10.1.9.9:443": false, "10.3.0.1:443": false, "10.1.0.1:22": false, "10.1.0.1:8443": false, "5.6.7.8:443": false,
		"[2a01:4f8::1]:443": false, "[2a01:4f9::1]:443": true, "[::ffff:5.6.7.8]:443": false, "127.0.0.1:443": false, "[fd13::1]:443": false,
	} {
		if err := g.control(context.Background(), "tcp4", address, nil); (err == nil) != want {
			t.Errorf("%s: %v, want allowed=%v", address, err, want)
		}
	}
}

// Ports replace the usual ones, and are named once.
func TestPortsReplaceTheUsualOnes(t *testing.T) {
	t.Parallel()
	g, err := NewGuard(GuardConfig{Ports: []uint16{9000, 443, 9000}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.checkURL("https://example.com:8443/", false); err == nil || !strings.HasSuffix(err.Error(), "allowed are [443 9000] (webhook.ports)") {
		t.Errorf("port 8443: %v", err)
	}
	if _, err := g.checkURL("http://example.com/", true); err == nil {
		t.Error("port 80 is allowed without being named")
	}
	if _, err := g.checkURL("https://example.com:9000/", false); err != nil {
		t.Errorf("port 9000: %v", err)
	}
}

func TestNewGuardRefuses(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]GuardConfig{
		"port 0":           {Ports: []uint16{0}},
		"zero prefix":      {Allow: []netip.Prefix{{}}},
		"wide mapped":      {Deny: []netip.Prefix{netip.MustParsePrefix("::ffff:0:0/90")}},
		"zero deny prefix": {Deny: []netip.Prefix{{}}},
	} {
		if _, err := NewGuard(cfg); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}
