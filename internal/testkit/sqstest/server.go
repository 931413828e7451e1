package sqstest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Server is an SQS. Make it with [NewServer].
type Server struct {
	// Now is the server's clock. Set it before the first request. It only says what time it is; long polls wait in real time, or in the time of the
	// bubble.
	Now func() time.Time
	// InFlight is how many messages of a queue may be in flight. Beyond it a long poll finds nothing and a short one is answered with OverLimit.
	InFlight int

	mu     sync.Mutex
	queues map[string]*box
	calls  map[string]int
	serial int
	stir   chan struct{} // closed and replaced when a message may have become visible
}

// NewServer returns a server without queues.
func NewServer() *Server {
	return &Server{
		Now: time.Now, InFlight: 120_000, queues: map[string]*box{}, calls: map[string]int{}, stir: make(chan struct{}),
	}
}

// Account is the account that all queues belong to.
const Account = "000000000000"

const urlPrefix = "https://sqs.us-east-1.amazonaws.com/" + Account + "/"

// Calls returns how many requests of that action there were, such as "SendMessageBatch".
func (s *Server) Calls(action string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[action]
}

// failure is an answer that refuses.
type failure struct {
	status        int
	code, message string
}

func (f *failure) Error() string { return f.code + ": " + f.message }

func refuse(code, format string, args ...any) error {
	return &failure{http.StatusBadRequest, code, fmt.Sprintf(format, args...)}
}

func invalid(format string, args ...any) error {
	return refuse("InvalidParameterValue", format, args...)
}

// ActionOf returns the action of a request to SQS.
func ActionOf(req *http.Request) string {
	return strings.TrimPrefix(req.Header.Get("X-Amz-Target"), "AmazonSQS.")
}

// RoundTrip implements [http.RoundTripper].
func (s *Server) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	_ = req.Body.Close()
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	out, err := s.serve(req.Context(), ActionOf(req), body)
	if ctxErr := req.Context().Err(); ctxErr != nil {
		return nil, ctxErr
	}
	if err != nil {
		f, ok := err.(*failure) //nolint:errorlint // made here, never wrapped
		if !ok {
			f = &failure{http.StatusInternalServerError, "InternalFailure", err.Error()}
		}
		return answer(req, f.status, map[string]string{"__type": "com.amazonaws.sqs#" + f.code, "message": f.message})
	}
	return answer(req, http.StatusOK, out)
}

func answer(req *http.Request, status int, v any) (*http.Response, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return &http.Response{
		Status: http.StatusText(status), StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header:        http.Header{"Content-Type": {"application/x-amz-json-1.0"}},
		Body:          io.NopCloser(bytes.NewReader(data)),
		ContentLength: int64(len(data)),
		Request:       req,
	}, nil
}

// serve carries out one action.
func (s *Server) serve(ctx context.Context, action string, body []byte) (any, error) {
	s.mu.Lock()
	s.calls[action]++
	s.mu.Unlock()
	switch action {
	case "CreateQueue":
		return handle(s, body, s.createQueue)
	case "GetQueueUrl":
		return handle(s, body, s.getQueueURL)
	case "GetQueueAttributes":
		return handle(s, body, s.getAttributes)
	case "SetQueueAttributes":
		return handle(s, body, s.setAttributes)
	case "ListQueues":
		return handle(s, body, s.listQueues)
	case "DeleteQueue":
		return handle(s, body, s.deleteQueue)
	case "SendMessage":
		return handle(s, body, s.sendOne)
	case "SendMessageBatch":
		return handle(s, body, s.sendBatch)
	case "DeleteMessage":
		return handle(s, body, s.deleteOne)
	case "DeleteMessageBatch":
		return handle(s, body, s.deleteBatch)
	case "ChangeMessageVisibility":
		return handle(s, body, s.changeOne)
	case "ChangeMessageVisibilityBatch":
		return handle(s, body, s.changeBatch)
	case "ReceiveMessage":
		return s.receive(ctx, body)
	}
	return nil, refuse("InvalidAction", "this server does not know %q", action)
}

// handle decodes the request and answers it under the lock.
func handle[In any](s *Server, body []byte, do func(In) (any, error)) (any, error) {
	var in In
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, refuse("MalformedInput", "%v", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return do(in)
}

func (s *Server) find(url string) (*box, error) {
	b := s.queues[url[strings.LastIndexByte(url, '/')+1:]]
	if b == nil {
		return nil, refuse("QueueDoesNotExist", "The specified queue does not exist.")
	}
	return b, nil
}

func (s *Server) stirred() {
	close(s.stir)
	s.stir = make(chan struct{})
}
