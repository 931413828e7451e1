package rabbitmq

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// management reads the management API. It changes nothing there.
type management struct {
	base   *url.URL // without credentials
	user   *url.Userinfo
	vhost  string
	client *http.Client
}

const (
	managementTimeout = 5 * time.Second
	managementPage    = 500
	// managementMost bounds an answer, should something else answer there.
	managementMost = 16 << 20
)

// newManagement returns nil if there is no management API. cfg was validated.
func newManagement(cfg Config, at address) *management {
	if cfg.Management == "" {
		return nil
	}
	base, err := url.Parse(cfg.Management)
	if err != nil {
		return nil
	}
	m := &management{base: base, user: base.User, vhost: at.uri.Vhost}
	base.User = nil
	m.client = &http.Client{
		Timeout:   managementTimeout,
		Transport: &http.Transport{TLSClientConfig: cfg.TLS.Clone(), MaxIdleConns: 1, IdleConnTimeout: time.Minute},
	}
	return m
}

func (m *management) close() { m.client.CloseIdleConnections() }

// managedQueue is a queue as the management API sees it, a few seconds late.
type managedQueue struct {
	Name     string         `json:"name"`
	Ready    int64          `json:"messages_ready"`
	Stuck    int64          `json:"messages_dlx"` // on their way to the dead-letter queue
	Policy   map[string]any `json:"effective_policy_definition"`
	PolicyAs string         `json:"policy"`
}

// queues lists the queues whose names begin with prefix.
func (m *management) queues(ctx context.Context, prefix string) ([]managedQueue, error) {
	var all []managedQueue
	for page := 1; ; page++ {
		query := url.Values{
			"page": {strconv.Itoa(page)}, "page_size": {strconv.Itoa(managementPage)},
			"name": {"^" + regexp.QuoteMeta(prefix)}, "use_regex": {"true"},
		}
		var answer struct {
			Pages int            `json:"page_count"`
			Items []managedQueue `json:"items"`
		}
		if err := m.get(ctx, query, &answer, "api", "queues", m.vhost); err != nil {
			return nil, err
		}
		all = append(all, answer.Items...)
		if page >= answer.Pages {
			return all, nil
		}
	}
}

// queue looks at one queue.
func (m *management) queue(ctx context.Context, name string) (managedQueue, error) {
	var q managedQueue
	err := m.get(ctx, nil, &q, "api", "queues", m.vhost, name)
	return q, err
}

func (m *management) get(ctx context.Context, query url.Values, into any, path ...string) error {
	u := *m.base
	raw := strings.TrimSuffix(u.Path, "/")
	for _, part := range path {
		raw += "/" + url.PathEscape(part)
	}
	u.RawPath, u.RawQuery = raw, query.Encode()
	u.Path, _ = url.PathUnescape(raw)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return fmt.Errorf("management API: %w", err)
	}
	if m.user != nil {
		password, _ := m.user.Password()
		req.SetBasicAuth(m.user.Username(), password)
	}
	res, err := m.client.Do(req)
	if err != nil {
		var asked *url.Error
		if errors.As(err, &asked) {
			err = asked.Err // without the URL
		}
		return fmt.Errorf("management API at %s: %w", u.Host, err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("management API at %s answers %s", u.Host, res.Status)
	}
	if err := json.NewDecoder(io.LimitReader(res.Body, managementMost)).Decode(into); err != nil {
		return fmt.Errorf("management API at %s: %w", u.Host, err)
	}
	return nil
}
