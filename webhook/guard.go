package webhook

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"syscall"

	"code.dny.dev/ssrf"
)

// GuardConfig says where deliveries may go. The zero value allows every public address on ports 80, 443 and 8443.
type GuardConfig struct {
	// Ports that deliveries may use. Empty means 80, 443 and 8443.
	Ports []uint16
	// AnyPort allows every port. For local demonstrations and tests.
	AnyPort bool
	// Allow are address ranges that are reachable although they are not public: private networks, or 127.0.0.0/8 in tests.
	Allow []netip.Prefix
	// Deny are further ranges that are never reachable, such as public addresses of our own. Deny beats Allow.
	Deny []netip.Prefix
	// Resolver looks host names up. Default: Go's own resolver, never the C library's, which takes spellings like 127.1 for addresses.
	Resolver *net.Resolver
}

// Guard decides which endpoints may be called. It checks URLs when they are configured and addresses when they are dialled. It is immutable
// and safe for concurrent use.
type Guard struct {
	ports    []uint16 // nil means any
	deny     []netip.Prefix
	allow    []netip.Prefix
	guardian *ssrf.Guardian
	resolver *net.Resolver
}

// platformAddresses are public by their numbers, but belong to the host: the Azure wire server, which hands out credentials.
var platformAddresses = netip.MustParsePrefix("168.63.129.16/32")

// defaultGuard is the guard of the zero config.
var defaultGuard = func() *Guard {
	g, err := NewGuard(GuardConfig{})
	if err != nil {
		panic(err)
	}
	return g
}()

// WithDefaults fills in what zero means.
func (c GuardConfig) WithDefaults() GuardConfig {
	if len(c.Ports) == 0 {
		c.Ports = []uint16{80, 443, 8443}
	}
	if c.Resolver == nil {
		c.Resolver = &net.Resolver{PreferGo: true}
	}
	return c
}

// NewGuard returns a guard.
func NewGuard(cfg GuardConfig) (*Guard, error) {
	cfg = cfg.WithDefaults()
	g := &Guard{ports: slices.Compact(slices.Sorted(slices.Values(cfg.Ports))), resolver: cfg.Resolver}
	if slices.Contains(cfg.Ports, 0) {
		return nil, errors.New("guard ports: 0 is not a port; use any_port to allow all")
	}
	if cfg.AnyPort {
		g.ports = nil
	}
	var err error
	if g.allow, err = unmapped("allow", cfg.Allow); err != nil {
		return nil, err
	}
	if g.deny, err = unmapped("deny", cfg.Deny); err != nil {
		return nil, err
	}
	var allow4, allow6 []netip.Prefix
	for _, p := range g.allow {
		if p.Addr().Is4() {
			allow4 = append(allow4, p)
		} else {
			allow6 = append(allow6, p)
		}
	}
	g.guardian = ssrf.New(
		ssrf.WithPorts(g.ports...),
		ssrf.WithAllowedV4Prefixes(allow4...),
		ssrf.WithAllowedV6Prefixes(allow6...),
		ssrf.WithDeniedV4Prefixes(platformAddresses),
	)
	return g, nil
}

// unmapped brings prefixes to the form in which addresses are compared: IPv4 as IPv4, host bits cleared.
func unmapped(field string, list []netip.Prefix) ([]netip.Prefix, error) {
	out := make([]netip.Prefix, len(list))
	for i, p := range list {
		if !p.IsValid() {
			return nil, fmt.Errorf("guard %s[%d]: not a prefix; write one like 10.1.0.0/16", field, i)
		}
		if p.Addr().Is4In6() {
			if p.Bits() < 96 {
				return nil, fmt.Errorf("guard %s[%d] %s: an IPv4-mapped prefix needs at least 96 bits; write it as IPv4", field, i, p)
			}
			p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
		}
		out[i] = p.Masked()
	}
	return out, nil
}

// checkAddress says whether the address may be dialled.
func (g *Guard) checkAddress(at netip.AddrPort) error {
	ip := at.Addr().Unmap()
	if ip.Zone() != "" || contains(g.deny, ip) || g.guardian.SafeAddrPort(netip.AddrPortFrom(ip, at.Port())) != nil {
		return ErrBlocked
	}
	return nil
}

func contains(list []netip.Prefix, ip netip.Addr) bool {
	return slices.ContainsFunc(list, func(p netip.Prefix) bool { return p.Contains(ip) })
}

// control is called by the dialer with each address it is about to connect to, after the lookup: this is the check that counts.
func (g *Guard) control(_ context.Context, network, address string, _ syscall.RawConn) error {
	if network != "tcp4" && network != "tcp6" {
		return ErrBlocked
	}
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return ErrBlocked
	}
	return g.checkAddress(at)
}

// allowsLoopback reports whether an operator opened the loopback network, and so the name localhost.
func (g *Guard) allowsLoopback() bool {
	return contains(g.allow, netip.MustParseAddr("127.0.0.1")) || contains(g.allow, netip.IPv6Loopback())
}
