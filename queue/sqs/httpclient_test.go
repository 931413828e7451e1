package sqs

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
)

// TestNoReceiveIsOrphaned guards against answers that break because the SDK closes the body of a request that is still being sent: about one in
// 4,000 to 10,000 receives, each of which hides up to ten messages for a whole lease. Nothing repeats the calls here.
func TestNoReceiveIsOrphaned(t *testing.T) {
	t.Parallel()
	calls := int64(4_000)
	if os.Getenv("SOAK") != "" {
		calls = 40_000
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		_, _ = io.WriteString(w, `{"Messages":[{"MessageId":"m","ReceiptHandle":"r","Body":"b"}]}`)
	}))
	defer server.Close()
	b, err := Open(t.Context(), Config{
		AWS: &aws.Config{Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("test", "test", "")}, Endpoint: server.URL,
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}()
	var sent, failed atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for sent.Add(1) <= calls {
				_, err := b.client.ReceiveMessage(t.Context(), &awssqs.ReceiveMessageInput{QueueUrl: aws.String(server.URL + "/q")})
				if err != nil && failed.Add(1) == 1 {
					t.Errorf("a receive failed: %v", err)
				}
			}
		})
	}
	wg.Wait()
	if n := failed.Load(); n > 0 {
		t.Errorf("%d of %d receives failed", n, calls)
	}
}

// TestBodyIsCopied shows that what the transport reads is not what the SDK closes.
func TestBodyIsCopied(t *testing.T) {
	t.Parallel()
	own := &closeRecorder{Reader: strings.NewReader(`{"a":1}`)}
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, "http://sqs.invalid/", own)
	if err != nil {
		t.Fatal(err)
	}
	client := copyClient{transport: roundTripper(func(r *http.Request) (*http.Response, error) {
		if !own.closed {
			t.Error("the SDK's body is still open while the transport sends")
		}
		for range 2 { // also what a transport sends again on another connection
			body, err := r.GetBody()
			if err != nil {
				t.Fatal(err)
			}
			if data, err := io.ReadAll(body); err != nil || string(data) != `{"a":1}` || r.ContentLength != int64(len(data)) {
				t.Errorf("the transport got %q of length %d, error %v", data, r.ContentLength, err)
			}
		}
		return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
	})}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
}

type closeRecorder struct {
	io.Reader
	closed bool
}

func (r *closeRecorder) Close() error {
	r.closed = true
	return nil
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestTimeoutsExceedTheWait: a client that hangs up before a long poll is over strands what the poll brings.
func TestTimeoutsExceedTheWait(t *testing.T) {
	t.Parallel()
	transport := newTransport()
	defer transport.CloseIdleConnections()
	if transport.ResponseHeaderTimeout < maxWait+pollMargin || pollMargin < 5e9 {
		t.Errorf("answers are waited for %v, a long poll takes %v", transport.ResponseHeaderTimeout, maxWait)
	}
	if transport.MaxIdleConnsPerHost < 64 {
		t.Errorf("%d idle connections for the pollers", transport.MaxIdleConnsPerHost)
	}
}
