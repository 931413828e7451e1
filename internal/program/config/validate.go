package config

import (
	"fmt"
	"maps"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/caisson-go/caisson/schedule"
	"github.com/caisson-go/caisson/worker"
)

// Off is the admin.addr that turns the admin server off.
const Off = "off"

// MaxWeight is the largest weight of a queue.
const MaxWeight = 1000

// MaxPriority is the priority of the queues that are put back first.
const MaxPriority = 2

// validator collects what no single value shows.
type validator struct {
	c        *Config
	where    map[string]string // by dotted key, for values that somebody set
	problems []Problem
	warnings []Warning
}

// validate checks what one value alone does not show.
func (c *Config) validate() ([]Warning, []Problem) {
	v := &validator{c: c, where: map[string]string{}}
	for _, s := range c.settings {
		if s.Origin != Inherited {
			v.where[s.Key] = s.Where
		}
	}
	v.broker()
	v.store()
	v.deadLetters()
	v.outbox()
	v.queues()
	v.times()
	v.kinds()
	v.destination("destinations.default", c.Destinations.Default)
	for _, name := range slices.Sorted(maps.Keys(c.Destinations.Overrides)) {
		v.destination("destinations.overrides."+name, c.Destinations.Overrides[name])
	}
	v.breaker("webhook.breaker", c.Webhook.Breaker)
	v.admin()
	v.webhook()
	v.registry()
	return v.warnings, v.problems
}

func (v *validator) problem(key, format string, args ...any) {
	v.problems = append(v.problems, Problem{Key: key, Where: v.where[key], Message: fmt.Sprintf(format, args...)})
}

func (v *validator) warn(key, format string, args ...any) {
	v.warnings = append(v.warnings, Warning{Key: key, Message: fmt.Sprintf(format, args...)})
}

// show sets what is printed for a key whose default depends on others.
func (v *validator) show(key, value string) {
	for i := range v.c.settings {
		if v.c.settings[i].Key == key {
			v.c.settings[i].Value = value
		}
	}
}

func (v *validator) queues() {
	if len(v.c.Queues) == 0 {
		v.problem("queues", "the list is empty, so no job would ever run: name at least one queue")
	}
	seen := map[string]bool{}
	for _, q := range v.c.Queues {
		err := v.c.CheckQueueName(q.Name)
		switch {
		case err != nil:
			v.problem("queues", "%s", err)
		case seen[q.Name]:
			v.problem("queues", "%s is listed twice: keep one", q.Name)
		}
		seen[q.Name] = true
		v.queue(q)
		if q.Priority < 0 || q.Priority > MaxPriority {
			v.problem("queues", "%s has priority %d: it must lie between 0, which comes first, and %d", q.Name, q.Priority, MaxPriority)
		}
		if q.Weight < 1 || q.Weight > MaxWeight {
			v.problem("queues", "%s has weight %d: it must lie between 1 and %d", q.Name, q.Weight, MaxWeight)
		}
	}
	if n := len(v.c.Queues); n > v.c.Concurrency {
		v.problem("concurrency", "%d slots cannot serve %d queues: each needs one at least", v.c.Concurrency, n)
	}
}

func (v *validator) times() {
	if v.c.Heartbeat == 0 {
		v.c.Heartbeat = worker.Config{Lease: v.c.Lease}.WithDefaults().Heartbeat
		v.show("heartbeat", show(v.c.Heartbeat))
	} else if v.c.Heartbeat >= v.c.Lease/2 {
		v.problem("heartbeat", "%s is not below half the lease of %s, so that one heartbeat that fails would lose it: use a third of it, %s",
			schedule.FormatDuration(v.c.Heartbeat), schedule.FormatDuration(v.c.Lease), schedule.FormatDuration(v.c.Lease/3))
	}
}

func (v *validator) kinds() {
	sum := 0
	var sized []string
	for _, name := range slices.Sorted(maps.Keys(v.c.Kinds)) {
		k, key := v.c.Kinds[name], "kinds."+name
		if k.Bulkhead.Size > 0 {
			sum += k.Bulkhead.Size
			sized = append(sized, fmt.Sprintf("%s %d", name, k.Bulkhead.Size))
		}
		v.kindStore(key, k)
		if keep := v.c.Idempotency.Retention; k.MaxAge > keep && k.Idempotency != "none" && v.c.ClaimStore() != StoreNone {
			v.problem(key+".max_age", "%s is longer than idempotency.retention %s, so a late copy could run again: shorten it or raise the retention",
				schedule.FormatDuration(k.MaxAge), schedule.FormatDuration(keep))
		}
		if span := k.Backoff.Span(k.MaxAttempts); k.MaxAge > 0 && !k.Backoff.IsZero() && span > k.MaxAge {
			v.warn(key+".max_age", "%d attempts can wait %s in all, so the last ones never come: a job expires at %s",
				k.MaxAttempts, schedule.FormatDuration(span), schedule.FormatDuration(k.MaxAge))
		}
	}
	if sum > v.c.Concurrency {
		v.problem("concurrency", "the bulkheads (%s) sum up to %d, which is more than the %d slots: raise concurrency or make them smaller",
			strings.Join(sized, ", "), sum, v.c.Concurrency)
	}
}

func (v *validator) destination(key string, d Destination) {
	v.rate(key, d.Rate)
	v.breaker(key+".breaker", d.Breaker)
}

// leastRate is what packages pools and webhook take; less is likely a value in the wrong unit.
const leastRate = 1e-6

func (v *validator) rate(key string, rate float64) {
	if rate > 0 && rate < leastRate {
		v.problem(key+".rate", "%v is too little: the least is %v a second, and 0 for no limit", rate, leastRate)
	}
}

func (v *validator) breaker(key string, b Breaker) {
	if b.ProbeSuccesses > b.Probes {
		v.problem(key+".probe_successes", "%d of %d probes can never succeed: it must not be above %s.probes", b.ProbeSuccesses, b.Probes, key)
	}
}

func (v *validator) admin() {
	a := v.c.Admin
	if (a.User == "") != a.Password.IsZero() {
		v.problem("admin.user", "user and password go together: set both of admin.user and admin.password, or neither")
	}
	if strings.Contains(a.User, ":") {
		v.problem("admin.user", "holds a colon, which basic authentication cannot carry: use another name")
	}
	if a.Addr == Off {
		return
	}
	host, port, err := net.SplitHostPort(a.Addr)
	if err != nil {
		v.problem("admin.addr", "%q is not host:port: for example 127.0.0.1:9464, or %s", a.Addr, Off)
		return
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		v.problem("admin.addr", "port %q must be a number between 0 and 65535", port)
	}
	if ip, err := netip.ParseAddr(host); a.User == "" && host != "localhost" && (err != nil || !ip.Unmap().IsLoopback()) {
		v.problem("admin.addr", "%q can be reached from other hosts: set admin.user and admin.password, or listen on 127.0.0.1:%s", a.Addr, port)
	}
}

func (v *validator) webhook() {
	w := v.c.Webhook
	for _, cidr := range w.AllowCIDRs {
		if p, err := netip.ParsePrefix(cidr); err != nil {
			v.problem("webhook.allow_cidrs", "%q is no network: write address/bits, for example 10.1.0.0/16", cidr)
		} else if p.Masked() != p {
			v.problem("webhook.allow_cidrs", "%q has address bits beyond its length: did you mean %s?", cidr, p.Masked())
		}
	}
	for _, port := range w.Ports {
		if port < 1 || port > 65535 {
			v.problem("webhook.ports", "%d is no port: use 1 to 65535", port)
		}
	}
	v.rate("webhook.default", w.Default.Rate)
	for _, id := range slices.Sorted(maps.Keys(w.Endpoints)) {
		v.rate("webhook.endpoints."+id, w.Endpoints[id].Rate)
		v.endpoint("webhook.endpoints."+id, w.Endpoints[id])
	}
}

func (v *validator) endpoint(key string, e Endpoint) {
	if len(e.Secrets) == 0 {
		v.problem(key+".secrets", "is missing: every delivery is signed, give at least one secret (whsec_...)")
	}
	if e.URL.IsZero() {
		v.problem(key+".url", "is missing: where should deliveries go?")
		return
	}
	u, err := url.Parse(e.URL.Reveal())
	switch {
	case err != nil || u.Host == "":
		v.problem(key+".url", "is no URL with a host: for example https://example.com/hook")
	case u.Scheme == "http" && !e.AllowHTTP:
		v.problem(key+".url", "%s is not encrypted: use https, or set %s.allow_http", e.URL, key)
	case u.Scheme != "http" && u.Scheme != "https":
		v.problem(key+".url", "scheme %q is not supported: use https", u.Scheme)
	case u.User != nil:
		v.problem(key+".url", "carries a user name: send credentials in %s.headers", key)
	}
}
