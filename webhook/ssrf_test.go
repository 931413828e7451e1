package webhook

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/dns/dnsmessage"
)

// newZone serves names with all their addresses at once. A name with an alias leads to the addresses of that one.
func newZone(t *testing.T, names, aliases map[string]string) *dnsServer {
	t.Helper()
	return serveNames(t, func(q dnsmessage.Question) (list []dnsmessage.Resource) {
		owner := strings.TrimSuffix(q.Name.String(), ".")
		name := q.Name
		if target, ok := aliases[owner]; ok {
			alias := dnsmessage.MustNewName(target + ".")
			list = append(list, dnsmessage.Resource{
				Header: dnsmessage.ResourceHeader{Name: name, Type: dnsmessage.TypeCNAME, Class: dnsmessage.ClassINET},
				Body:   &dnsmessage.CNAMEResource{CNAME: alias},
			})
			owner, name = target, alias
		}
		for text := range strings.FieldsSeq(names[owner]) {
			ip := netip.MustParseAddr(text)
			if ip.Is4() == (q.Type == dnsmessage.TypeA) && (q.Type == dnsmessage.TypeA || q.Type == dnsmessage.TypeAAAA) {
				list = append(list, record(name, ip))
			}
		}
		return list
	})
}

// tripwire listens on an address and counts who connects.
func tripwire(t *testing.T, address string) (port string, touched *atomic.Int64) {
	t.Helper()
	l := listen(t, address)
	touched = new(atomic.Int64)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	_ = server.Listener.Close()
	server.Listener = l
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			touched.Add(1)
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	_, port, _ = net.SplitHostPort(l.Addr().String())
	return port, touched
}

// TestHostileURLsMakeNoCall: neither a test delivery nor a job calls such a URL, also where it came past the check at save. What the job's owner is
// told is the same for all of them, or says what is wrong with the text, and never what is there.
func TestHostileURLsMakeNoCall(t *testing.T) {
	t.Parallel()
	if n := len(hostileURLs); n < 60 {
		t.Fatalf("%d URLs", n)
	}
	s := newSender(t, Config{Guard: defaultGuard})
	for _, raw := range hostileURLs {
		e := endpointAt("e", raw)
		e.AllowHTTP = false
		r, err := s.Send(t.Context(), e, event)
		if err == nil || r.Status != 0 || r.Err != nil {
			t.Errorf("test delivery to %q: %+v, %v", raw, r, err)
		}
		s := newSender(t, Config{Guard: defaultGuard, Endpoints: unchecked{e}})
		if diff := cmp.Diff(rejected, verdictOf(t, s.deliver(t.Context(), jobFor("e")))); diff != "" {
			t.Errorf("job to %q (-want +got):\n%s", raw, diff)
		}
	}
}

// TestHostileResolvers: names that are fine and lead where nobody may go, over A and AAAA records, aliases, and lists in which one address is fine.
func TestHostileResolvers(t *testing.T) {
	t.Parallel()
	names, aliases := map[string]string{}, map[string]string{}
	for i, text := range hostileAddresses {
		if ip := netip.MustParseAddr(text); ip.Zone() == "" { // records hold none
			names[fmt.Sprintf("h%d.example.com", i)] = text
		}
	}
	names["many.example.com"] = "10.0.0.1 169.254.169.254 ::1 fd00:ec2::254 127.0.0.1"
	names["inside.example.net"] = "127.0.0.1"
	aliases["alias.example.com"] = "inside.example.net"
	aliases["metadata.example.com"] = "metadata.google.internal"
	names["metadata.google.internal"] = "169.254.169.254"
	hosts := []string{"alias.example.com", "metadata.example.com", "MANY.example.com.", "xn--bcher-kva.example.com"}
	names["xn--bcher-kva.example.com"] = "192.168.0.1"
	for name := range names {
		hosts = append(hosts, name)
	}
	if len(hosts) < 60 {
		t.Fatalf("%d names", len(hosts))
	}
	port, touched := tripwire(t, "127.0.0.1:0")
	guard, err := NewGuard(GuardConfig{AnyPort: true, Resolver: newZone(t, names, aliases).resolver()})
	if err != nil {
		t.Fatal(err)
	}
	s := newSender(t, Config{Guard: guard})
	for _, host := range hosts {
		for _, scheme := range []string{"https", "http"} {
			e := endpointAt("e", scheme+"://"+host+":"+port+"/hook")
			r := send(t, s, e)
			if r.Status != 0 || r.Phase != PhaseNotSent || r.Err == nil || r.Err.Error() != ErrBlocked.Error() {
				t.Errorf("test delivery to %s, %s: %+v", host, names[host], r)
			}
			err := newSender(t, Config{Guard: guard, Endpoints: unchecked{e}}).deliver(t.Context(), jobFor("e"))
			if diff := cmp.Diff(rejected, verdictOf(t, err)); diff != "" || err.Error() != ErrBlocked.Error() {
				t.Errorf("job to %s: %v (-want +got):\n%s", host, err, diff)
			}
		}
	}
	if n := touched.Load(); n != 0 {
		t.Errorf("%d connections were made", n)
	}
}

// TestMixedResolver: of several addresses only those are dialled that are allowed.
func TestMixedResolver(t *testing.T) {
	t.Parallel()
	rec := &receiver{}
	rec.Server = httptest.NewUnstartedServer(rec.handler(status(http.StatusOK)))
	_ = rec.Listener.Close()
	rec.Listener = listen(t, "127.0.0.2:0")
	rec.Start()
	t.Cleanup(rec.Close)
	_, port, _ := net.SplitHostPort(rec.Listener.Addr().String())
	_, touched := tripwire(t, "127.0.0.1:"+port)
	zone := newZone(t, map[string]string{"mixed.example.com": "127.0.0.1 127.0.0.2 10.0.0.1"}, nil)
	guard, err := NewGuard(GuardConfig{AnyPort: true, Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.2/32")}, Resolver: zone.resolver()})
	if err != nil {
		t.Fatal(err)
	}
	r := send(t, newSender(t, Config{Guard: guard}), endpointAt("e", "http://mixed.example.com:"+port))
	if r.Status != http.StatusOK || touched.Load() != 0 || len(rec.requests()) != 1 {
		t.Errorf("%+v, %d connections to the inside", r, touched.Load())
	}
}

// TestRedirectsLeadNowhere: an endpoint that is allowed cannot send a test delivery anywhere else, to the inside least of all.
func TestRedirectsLeadNowhere(t *testing.T) {
	t.Parallel()
	port, touched := tripwire(t, "127.0.0.1:0")
	var targets []string
	for _, path := range []string{"/", "/latest/meta-data/"} {
		targets = append(targets, "http://127.0.0.1:"+port+path, "//127.0.0.1:"+port+path, "http://2130706433:"+port+path, "http://localhost:"+port+path)
	}
	for _, code := range []int{300, 301, 302, 303, 305, 307, 308} {
		for _, target := range targets {
			rec := &receiver{}
			rec.Server = httptest.NewUnstartedServer(rec.handler(func(w http.ResponseWriter, _ *http.Request, _ int) {
				w.Header().Set("Location", target)
				w.Header().Set("Refresh", "0; url="+target)
				w.WriteHeader(code)
			}))
			_ = rec.Listener.Close()
			rec.Listener = listen(t, "127.0.0.2:0")
			rec.Start()
			e := endpointAt("e", rec.URL)
			if r := send(t, newSender(t, Config{}), e); r.Status != code { // also where the inside is allowed
				t.Errorf("%d to %s: %+v", code, target, r)
			}
			rec.Close()
			if n := len(rec.requests()); n != 1 {
				t.Errorf("%d to %s: %d requests", code, target, n)
			}
		}
	}
	if n := touched.Load(); n != 0 {
		t.Errorf("%d connections were made", n)
	}
}

const envProxied = "CAISSON_TEST_PROXIED"

// TestProxiesAreNotUsed: a proxy in the environment would dial in our place, past the guard. The environment is read once in a process, so this
// is one of its own.
func TestProxiesAreNotUsed(t *testing.T) {
	if os.Getenv(envProxied) != "" {
		proxiedDeliveries(t)
		return
	}
	t.Parallel()
	port, touched := tripwire(t, "127.0.0.1:0")
	proxy := "http://127.0.0.1:" + port
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestProxiesAreNotUsed$", "-test.count=1") //nolint:gosec // this binary
	cmd.Env = append(os.Environ(), envProxied+"=1", "NO_PROXY=", "no_proxy=", "REQUEST_METHOD=")
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"} {
		cmd.Env = append(cmd.Env, name+"="+proxy)
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	if n := touched.Load(); n != 0 {
		t.Errorf("the proxy got %d connections", n)
	}
}

// proxiedDeliveries makes deliveries to a name: net/http uses no proxy for the loopback's own address, whatever the environment says.
func proxiedDeliveries(t *testing.T) {
	private := newAuthority(t, "private")
	plain := newReceiver(t, status(http.StatusOK))
	zone := newZone(t, map[string]string{"hooks.example.com": "127.0.0.1", "inside.example.com": "10.0.0.1"}, nil)
	guard, err := NewGuard(GuardConfig{AnyPort: true, Allow: loopback, Resolver: zone.resolver()})
	if err != nil {
		t.Fatal(err)
	}
	if used, err := http.ProxyFromEnvironment(&http.Request{URL: &url.URL{Scheme: "http", Host: "hooks.example.com"}}); used == nil || err != nil {
		t.Fatalf("the environment names no proxy: %v, %v", used, err)
	}
	s := newSender(t, Config{Guard: guard})
	_, port, _ := net.SplitHostPort(plain.Listener.Addr().String())
	e := endpointAt("e", "http://hooks.example.com:"+port)
	if r := send(t, s, e); r.Status != http.StatusOK || len(plain.requests()) != 1 {
		t.Errorf("%+v", r)
	}
	for _, own := range []string{"", private.pem} {
		inside := endpointAt("inside", "https://inside.example.com")
		inside.TLS.RootCAs = own
		if r := send(t, s, inside); !errors.Is(r.Err, ErrBlocked) {
			t.Errorf("%+v", r)
		}
	}
}
