package endpointcmd_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caisson-go/caisson/internal/program/cli"
	"github.com/caisson-go/caisson/internal/webhookapi"
	"github.com/caisson-go/caisson/webhook/signature"
)

const url = "https://shop.example.com/hooks/tok_98765"

// What flags say is what is kept; the secret is printed once, and nothing else that may be secret ever.
func TestAddShowEdit(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	added := r.run("endpoints", "add", "shop", url, "--event", "a.*", "--event", "b", "--header", "X-Api-Key=k-98765", "--header", "X-File=@"+r.write("h", "v-98765\n"),
		"--rate", "2.5", "--timeout", "5s", "--metadata", "owner=ann", "--tenant", "acme", "--max-concurrency", "2", "--client-errors", "reject")
	secret := strings.TrimSpace(added.ok())
	if _, err := signature.ParseSecret(secret); err != nil || !strings.Contains(added.err, "is not shown again") {
		t.Errorf("printed %q and %q: %v", added.out, added.err, err)
	}
	var e webhookapi.Endpoint
	r.run("endpoints", "show", "shop", "--json").into(&e)
	want := e
	want.ID, want.Tenant, want.Origin, want.Events, want.Headers, want.Rate, want.Timeout = "shop", "acme", "https://shop.example.com", []string{"a.*", "b"}, []string{"X-Api-Key", "X-File"}, 2.5, "5s"
	want.Metadata, want.Concurrency, want.ClientErrors, want.State = map[string]string{"owner": "ann"}, 2, "reject", "active"
	if diff := cmp.Diff(want, e); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	r.run("endpoints", "edit", "shop", "--rate", "0", "--header", "X-Api-Key", "--metadata", "team=x", "--event", "c", "--ordered").ok()
	var edited webhookapi.Endpoint
	r.run("endpoints", "show", "shop", "--json").into(&edited)
	if edited.Rate != 0 || !cmp.Equal(edited.Headers, []string{"X-File"}) || !cmp.Equal(edited.Events, []string{"c"}) || !edited.Ordered || edited.Timeout != "5s" || len(edited.Metadata) != 2 {
		t.Errorf("edited: %+v", edited)
	}
	r.run("endpoints", "edit", "shop", "--rate", "1", "--if-revision", fmt.Sprint(e.Revision)).fails(cli.Failure, "read it again")
	r.run("endpoints", "edit", "shop", "--rate", "1", "--if-revision", fmt.Sprint(edited.Revision)).ok()
	for _, command := range [][]string{{"show", "shop"}, {"show", "shop", "--json"}, {"list"}, {"list", "--json"}} {
		out := r.run(append([]string{"endpoints"}, command...)...).ok()
		for _, hidden := range []string{"tok_98765", "k-98765", "v-98765", strings.TrimPrefix(secret, "whsec_")} {
			if strings.Contains(out, hidden) {
				t.Errorf("%v prints %q:\n%s", command, hidden, out)
			}
		}
		if !strings.Contains(out, "shop") {
			t.Errorf("%v prints %s", command, out)
		}
	}
}

// A secret of the caller's own comes from a file or standard input.
func TestSecretFromStandardInput(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	first, second := signature.NewSecret().Reveal(), signature.NewSecret().Reveal()
	if out := r.runWith(first+"\n", "endpoints", "add", "shop", url, "--secret-file", "-").ok(); out != first+"\n" {
		t.Errorf("add printed %q", out)
	}
	if out := r.run("endpoints", "rotate-secret", "shop", "--secret-file", r.write("s", second), "--window", "1h").ok(); out != second+"\n" {
		t.Errorf("rotate-secret printed %q", out)
	}
	if out := r.run("endpoints", "rotate-secret", "shop").ok(); out == second+"\n" || !strings.HasPrefix(out, "whsec_") {
		t.Errorf("rotate-secret printed %q", out)
	}
	if out := r.run("endpoints", "show", "shop").ok(); !strings.Contains(out, "3 secrets") {
		t.Errorf("show prints\n%s", out)
	}
	r.runWith("hunter2", "endpoints", "add", "other", url, "--secret-file", "-").fails(cli.Usage, "whsec_")
	if got := r.runWith("hunter2", "endpoints", "add", "other", url, "--secret-file", "-"); strings.Contains(got.err, "hunter2") {
		t.Errorf("a refusal shows the secret: %s", got.err)
	}
	r.runWith(second, "endpoints", "add", "other", url, "--secret-file", "-").fails(cli.Failure, "another endpoint")
	r.runWith("", "endpoints", "add", "other", url, "--secret-file", "-").fails(cli.Usage, "no secret in it")
}

func TestStates(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, id := range []string{"a", "b"} {
		r.run("endpoints", "add", id, url).ok()
	}
	r.run("endpoints", "pause", "a", "b", "--reason", "maintenance").ok()
	if out := r.run("endpoints", "list", "--state", "paused").ok(); strings.Count(out, "paused (maintenance)") != 2 {
		t.Errorf("list prints\n%s", out)
	}
	r.run("endpoints", "enable", "a", "nobody").fails(cli.Partial, "1 of 2 endpoints were not changed")
	r.run("endpoints", "disable", "a").ok()
	if out := r.run("endpoints", "show", "a").ok(); !strings.Contains(out, "disabled (by an operator)") {
		t.Errorf("show prints\n%s", out)
	}
	r.run("endpoints", "delete", "a").fails(cli.Usage, "add --yes")
	if out := r.run("endpoints", "delete", "a", "--yes").ok(); out != "deleted a\n" {
		t.Errorf("delete printed %q", out)
	}
	r.run("endpoints", "show", "a").fails(cli.Failure, "see worker endpoints list")
}

func TestRefusedCommandLines(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.run("endpoints", "add", "taken", url).ok()
	for name, tt := range map[string]struct {
		args []string
		code cli.Code
		says string
	}{
		"http":            {[]string{"add", "a", "http://example.com"}, cli.Usage, "allow_http"},
		"inside":          {[]string{"add", "a", "https://10.0.0.1/"}, cli.Usage, "url"},
		"bad id":          {[]string{"add", "A", url}, cli.Usage, "lower-case"},
		"pattern":         {[]string{"add", "a", url, "--event", "*x"}, cli.Usage, "pattern"},
		"long timeout":    {[]string{"add", "a", url, "--timeout", "1m"}, cli.Usage, "timeout 1m: use at most 26s"},
		"no number":       {[]string{"add", "a", url, "--rate", "abc"}, cli.Usage, `worker: --rate "abc": give a number (see`},
		"no whole number": {[]string{"add", "a", url, "--concurrency", "1.5"}, cli.Usage, `--max-concurrency "1.5": give a whole number`},
		"no bool":         {[]string{"add", "a", url, "--ordered=maybe"}, cli.Usage, `--ordered "maybe": give true or false`},
		"large":           {[]string{"add", "a", url, "--rate", "1e999"}, cli.Usage, `--rate "1e999": give a smaller number`},
		"duration":        {[]string{"add", "a", url, "--timeout", "5"}, cli.Usage, "timeout"},
		"header":          {[]string{"add", "a", url, "--header", "x"}, cli.Usage, "--header: write name=value"},
		"reserved":        {[]string{"add", "a", url, "--header", "Host=x"}, cli.Usage, "reserved"},
		"no file":         {[]string{"add", "a", url, "--tls-cert", "/nowhere"}, cli.Usage, "--tls-cert"},
		"taken":           {[]string{"add", "taken", url}, cli.Failure, "worker endpoints edit"},
		"nothing to edit": {[]string{"edit", "taken"}, cli.Usage, "nothing to change"},
		"nobody":          {[]string{"edit", "nobody", "--rate", "1"}, cli.Failure, "worker endpoints list"},
		"state":           {[]string{"list", "--state", "odd"}, cli.Usage, "active, paused or disabled"},
		"window":          {[]string{"rotate-secret", "taken", "--window", "90d"}, cli.Usage, "--window"},
		"since missing":   {[]string{"recover", "taken"}, cli.Usage, "--since is missing"},
		"since later":     {[]string{"recover", "taken", "--since", "2999-01-01T00:00:00Z"}, cli.Usage, "future"},
		"no attempts":     {[]string{"attempts", "nobody"}, cli.Failure, "worker endpoints list"},
		"limit":           {[]string{"attempts", "taken", "--limit", "0"}, cli.Usage, "--limit"},
	} {
		t.Run(name, func(t *testing.T) {
			got := r.run(append([]string{"endpoints"}, tt.args...)...)
			got.t = t
			got.fails(tt.code, tt.says)
		})
	}
}

// The ports of the configuration replace the usual ones for the registry, too.
func TestPorts(t *testing.T) {
	t.Parallel()
	r := newRig(t, "CAISSON_WEBHOOK_PORTS=9000,8001")
	r.run("endpoints", "add", "a", "https://example.com/").fails(cli.Usage, "port 443 is not allowed; allowed are [8001 9000]")
	r.run("endpoints", "add", "a", "https://example.com:9000/").ok()
}

// A backoff of default is none of its own, and a longer default timeout allows longer ones.
func TestScheduleAndTimeoutOfTheDefault(t *testing.T) {
	t.Parallel()
	r := newRig(t, "CAISSON_WEBHOOK_DEFAULT_TIMEOUT=2m")
	r.run("endpoints", "add", "a", url, "--backoff", "constant(3s)", "--timeout", "1m").ok()
	for _, none := range []string{"default", ""} {
		var e webhookapi.Endpoint
		if r.run("endpoints", "edit", "a", "--backoff", none, "--json").into(&e); e.Backoff != "" || e.Timeout != "1m" {
			t.Errorf("--backoff %q: %+v", none, e)
		}
		r.run("endpoints", "edit", "a", "--backoff", "constant(3s)").ok()
	}
	r.runWith(`{"id":"b","url":"https://example.com/","timeout":"3m"}`, "endpoints", "import", "-", "--json").fails(cli.Usage, "use at most 2m")
}

// Flags go by the names of the API's fields, too.
func TestNamesOfTheAPI(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.run("endpoints", "add", "a", url, "--concurrency", "5", "--events", "x.*", "--client_errors", "reject").ok()
	var e webhookapi.Endpoint
	if r.run("endpoints", "show", "a", "--json").into(&e); e.Concurrency != 5 || len(e.Events) != 1 || e.ClientErrors != "reject" {
		t.Errorf("%+v", e)
	}
}

// Without a key there is no registry, and with another one its endpoints cannot be read; reseal takes them over.
func TestKeys(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.run("endpoints", "add", "shop", url).ok()
	old := r.env[1]
	r.env[1] = "CAISSON_X=1"
	r.run("endpoints", "list").fails(cli.Usage, "worker endpoints new-key")
	next := strings.TrimSpace(r.run("endpoints", "new-key").ok())
	r.env[1] = "CAISSON_WEBHOOK_SECRET_KEY=" + next
	r.run("endpoints", "show", "shop").fails(cli.Failure, "key")
	if got := r.run("endpoints", "pause", "shop"); got.code != cli.Failure || !strings.Contains(got.err, `change endpoint "shop": webhook endpoint is sealed`) ||
		!strings.Contains(got.err, "webhook.old_secret_keys") {
		t.Errorf("pause: %d %s", got.code, got.err)
	}
	if got := r.run("endpoints", "list"); got.code != cli.Failure || !strings.Contains(got.out, "shop") {
		t.Errorf("list: %d\n%s%s", got.code, got.out, got.err)
	}
	r.env = append(r.env, strings.Replace(old, "SECRET_KEY=", "OLD_SECRET_KEYS=", 1))
	if out := r.run("endpoints", "reseal").ok(); !strings.HasPrefix(out, "sealed 1 endpoint anew") {
		t.Errorf("reseal printed %q", out)
	}
	r.env = r.env[:len(r.env)-1]
	r.run("endpoints", "show", "shop").ok()
	oldFile := r.write("old", strings.TrimPrefix(old, "CAISSON_WEBHOOK_SECRET_KEY="))
	onlyOld := r.with(old)
	onlyOld.run("endpoints", "add", "late", url).ok()
	r.run("endpoints", "show", "late").fails(cli.Failure, "key")
	both := r.with("CAISSON_WEBHOOK_OLD_SECRET_KEY_FILES=" + oldFile)
	both.run("endpoints", "reseal").ok()
	bad := r.write("bad", "hunter2")
	for _, v := range []string{"CAISSON_WEBHOOK_OLD_SECRET_KEY_FILES=" + bad, "CAISSON_WEBHOOK_OLD_SECRET_KEYS=hunter2"} {
		got := r.with(v).run("endpoints", "list")
		if got.fails(cli.Usage, "webhook.old_secret_key"); strings.Contains(got.err, "hunter2") {
			t.Errorf("prints the key: %s", got.err)
		}
	}
	r.env[1] = "CAISSON_WEBHOOK_SECRET_KEY_FILE=" + r.write("key", next+"\n")
	r.run("endpoints", "show", "shop").ok()
	r.env[1] = "CAISSON_WEBHOOK_SECRET_KEY=tooshort"
	if got := r.run("endpoints", "list"); got.code != cli.Usage || !strings.Contains(got.err, "webhook.secret_key") || strings.Contains(got.err, "tooshort") {
		t.Errorf("a bad key: %d %s", got.code, got.err)
	}
}

// A test delivery from the command line says what came back, and exits 1 where it was not taken.
func TestTestCommand(t *testing.T) {
	t.Parallel()
	status := http.StatusNoContent
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
	t.Cleanup(receiver.Close)
	port := receiver.URL[strings.LastIndex(receiver.URL, ":")+1:]
	r := newRig(t, "CAISSON_WEBHOOK_PORTS="+port)
	r.run("endpoints", "add", "shop", receiver.URL, "--allow-http").ok()
	if out := r.run("endpoints", "test", "shop").ok(); !strings.HasPrefix(out, "delivered: 204 (answered) in ") {
		t.Errorf("printed %q", out)
	}
	status = http.StatusInternalServerError
	if got := r.run("endpoints", "test", "shop", "{}"); got.code != cli.Failure || !strings.HasPrefix(got.out, "not delivered: 500") {
		t.Errorf("code %d, printed %q", got.code, got.out)
	}
	r.env[2] = "CAISSON_WEBHOOK_ALLOW_CIDRS=10.0.0.0/8"
	r.run("endpoints", "test", "shop").fails(cli.Failure, "url")
}

// A flag that was renamed is refused with its new name.
func TestRenamedFlags(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, args := range [][]string{{"endpoints", "add", "a", url, "--schedule", "x"}, {"endpoints", "edit", "a", "--schedule=x"}} {
		r.run(args...).fails(cli.Usage, "it is called --backoff now")
	}
}
