package sqs

import (
	"bytes"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/caisson-go/caisson/queue"
)

var plainEnv = queue.Envelope{ID: "j-1", Kind: "a.b", EnqueuedAt: time.Unix(1_700_000_000, 0)}

func enveloped(t *testing.T, body []byte, headers map[string]string) queue.Message {
	t.Helper()
	m, err := queue.NewMessage(plainEnv, body)
	if err != nil {
		t.Fatal(err)
	}
	maps.Copy(m.Headers, headers)
	return m
}

var bodies = map[string][]byte{
	"text": []byte("hello"), "empty": {}, "nil": nil, "zero": {0}, "escape": []byte("\x1b[0m"), "invalid": []byte("\xff\xfe"),
	"not a character": []byte("\uffff"), "emoji": []byte("\U0001f600"), "looks like base64": []byte("aGVsbG8="), "looks empty": []byte("empty"),
	"line ends": []byte("a\r\n\tb"), "DEL": []byte("\x7f"),
}

var headerSets = map[string]map[string]string{
	"none":          nil,
	"plain":         {"a": "1", "B": "x y"},
	"refused value": {"a": ""}, "refused name": {"a b": "1"}, "control": {"a": "\x01"}, "dots": {"a..b": "1"}, "aws": {"AWS.x": "1"},
	"unicode":         {"a": "K\u00fc\u4e2d\U0001f600\uffff"},
	"eleven":          {"1": "1", "2": "1", "3": "1", "4": "1", "5": "1", "6": "1", "7": "1", "8": "1", "9": "1", "10": "1", "11": "1"},
	"types of others": {HeaderTypes: `{"a":"Number"}`, "a": "not a number"}, "types of none": {HeaderTypes: `{"b":"Number"}`}, "types broken": {HeaderTypes: `{`},
	"bad binary": {HeaderTypes: `{"a":"Binary"}`, "a": "%"}, "odd type": {HeaderTypes: `{"a":"Thing"}`, "a": "1"},
}

// What was sent comes back, by whatever way it went, and SQS takes it.
func TestMessagesRoundTrip(t *testing.T) {
	t.Parallel()
	for bodyName, body := range bodies {
		for headerName, headers := range headerSets {
			for _, envelope := range []bool{false, true} {
				for _, extra := range []meta{{}, {ID: "m-1", Attempts: 3, Deliveries: 4, EnqueuedMS: 17, DueMS: 18}} {
					m := queue.Message{Body: body, Headers: headers}
					if envelope {
						m = enveloped(t, body, headers)
					}
					w, err := encode(m, extra)
					if err != nil {
						t.Fatalf("%s, %s: %v", bodyName, headerName, err)
					}
					checkWire(t, w)
					got, gotMeta, err := decode(w.body, w.attributes)
					if err != nil {
						t.Fatalf("%s, %s: %v", bodyName, headerName, err)
					}
					if diff := cmp.Diff(m, got, cmpopts.EquateEmpty()); diff != "" {
						t.Errorf("%s, %s, envelope %t: the message changed:\n%s", bodyName, headerName, envelope, diff)
					}
					gotMeta.Version, gotMeta.Body = 0, ""
					if diff := cmp.Diff(extra, gotMeta); diff != "" {
						t.Errorf("%s, %s: the metadata changed:\n%s", bodyName, headerName, diff)
					}
				}
			}
		}
	}
}

// checkWire asserts what SQS asks of a message.
func checkWire(t *testing.T, w wire) {
	t.Helper()
	if !validText(w.body) {
		t.Errorf("SQS refuses the body %q", w.body)
	}
	if len(w.attributes) > maxAttributes {
		t.Errorf("%d attributes", len(w.attributes))
	}
	for name, a := range w.attributes {
		if !validAttributeName(name) || len(a.BinaryValue) == 0 && !validText(aws.ToString(a.StringValue)) {
			t.Errorf("SQS refuses the attribute %q %+v", name, a)
		}
	}
}

// The wire format that is published for other languages: the attribute is the envelope, the body is the payload.
func TestWireFormat(t *testing.T) {
	t.Parallel()
	m := enveloped(t, []byte(`{"to":"ada"}`), nil)
	w, err := encode(m, meta{})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]types.MessageAttributeValue{"caisson": {DataType: aws.String("String"), StringValue: aws.String(m.Headers["caisson"])}}
	if diff := cmp.Diff(want, w.attributes, cmpopts.IgnoreUnexported(types.MessageAttributeValue{})); diff != "" || w.body != string(m.Body) {
		t.Errorf("body %q, attributes differ:\n%s", w.body, diff)
	}
}

// An envelope that happens to begin like our metadata is not taken for it.
func TestEnvelopeLikeMetadata(t *testing.T) {
	t.Parallel()
	m := queue.Message{Body: []byte("x"), Headers: map[string]string{"caisson": metaPrefix + `,"headers":{"a":"b"}}`}}
	w, err := encode(m, meta{})
	if err != nil {
		t.Fatal(err)
	}
	if got, _, err := decode(w.body, w.attributes); err != nil || cmp.Diff(m, got) != "" {
		t.Errorf("got %+v, error %v", got, err)
	}
}

// Metadata that cannot be read is never guessed at.
func TestBrokenMetadata(t *testing.T) {
	t.Parallel()
	for _, value := range []string{`{"caisson_sqs":1,"headers":`, `{"caisson_sqs":1,"headers":{"caisson":1}}`, `{"caisson_sqs":12}`} {
		got, _, err := decode("body", ours(value))
		if err != nil || got.Headers["caisson"] != value || string(got.Body) != "body" {
			t.Errorf("%s: got %+v, error %v; want it as an envelope that nobody can read", value, got, err)
		}
	}
	for _, value := range []string{`{"caisson_sqs":1,"body":"base64"}`, `{"caisson_sqs":1,"body":"zstd"}`} {
		if _, _, err := decode("%%%", ours(value)); err == nil {
			t.Errorf("%s: no error", value)
		}
	}
}

// Field case G1(b): ten native attributes of all types come back exactly, also from a copy that has them folded.
func TestNativeAttributesAreRestored(t *testing.T) {
	t.Parallel()
	native := map[string]types.MessageAttributeValue{
		"n": {DataType: aws.String("Number"), StringValue: aws.String("1.50")}, "ni": {DataType: aws.String("Number.int"), StringValue: aws.String("-7")},
		"b": {DataType: aws.String("Binary"), BinaryValue: []byte{0, 1, 255}}, "png": {DataType: aws.String("Binary.png"), BinaryValue: []byte("PNG")},
		"sx": {DataType: aws.String("String.x"), StringValue: aws.String("y")},
	}
	for i := range 5 {
		native[fmt.Sprintf("s%d", i)] = types.MessageAttributeValue{DataType: aws.String("String"), StringValue: aws.String("v\u00fc")}
	}
	received, _, err := decode("body", native)
	if err != nil {
		t.Fatal(err)
	}
	folded, err := encode(received, meta{ID: "m-1", Attempts: 1})
	if err != nil || len(folded.attributes) != 1 {
		t.Fatalf("%d attributes in a copy, error %v", len(folded.attributes), err)
	}
	again, _, err := decode(folded.body, folded.attributes)
	if err != nil {
		t.Fatal(err)
	}
	for what, m := range map[string]queue.Message{"republished": received, "republished after a copy": again} {
		w, err := encode(m, meta{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(native, w.attributes, cmpopts.IgnoreUnexported(types.MessageAttributeValue{})); diff != "" {
			t.Errorf("%s: attributes differ:\n%s", what, diff)
		}
	}
	// With what a dead letter says of itself there are too many: all are kept, folded.
	received.Headers["caisson-cause"] = "exhausted"
	dead, err := encode(received, meta{})
	if err != nil || len(dead.attributes) != 1 {
		t.Fatalf("%d attributes of a dead letter, error %v", len(dead.attributes), err)
	}
	if got, _, err := decode(dead.body, dead.attributes); err != nil || cmp.Diff(received.Headers, got.Headers) != "" {
		t.Errorf("headers of the dead letter: %v, error %v", got.Headers, err)
	}
}

func TestHeadersThatAreNoText(t *testing.T) {
	t.Parallel()
	m := queue.Message{Body: []byte("x"), Headers: map[string]string{"a": "\xff"}}
	if _, err := encode(m, meta{}); err == nil || !strings.Contains(err.Error(), `"a"`) {
		t.Errorf("error %v, want one that names the header", err)
	}
}

func TestGroupIDs(t *testing.T) {
	t.Parallel()
	for group, same := range map[string]bool{
		"tenant-1": true, "https://api.example.com/x?y=z": true, strings.Repeat("a", 128): true, strings.Repeat("a", 129): false, "two words": false, "K\u00fc": false,
	} {
		got := groupID(group)
		if !validID(got) || (got == group) != same || got != groupID(group) {
			t.Errorf("groupID(%q) is %q", group, got)
		}
	}
	if groupID("two words") == groupID("two  words") {
		t.Error("two groups have one id")
	}
	if a, b := dedupID(""), dedupID(""); a == b || !validID(a) {
		t.Errorf("ids of two publications: %q and %q", a, b)
	}
	if dedupID("x") != "x" {
		t.Error("an id of the publication's own was changed")
	}
}

func TestSizeCountsAttributes(t *testing.T) {
	t.Parallel()
	w := wire{body: "12345", attributes: map[string]types.MessageAttributeValue{
		"name": {DataType: aws.String("String"), StringValue: aws.String("value")}, "b": {DataType: aws.String("Binary"), BinaryValue: []byte{1, 2}},
	}}
	if got, want := w.size(), 5+4+6+5+1+6+2; got != want {
		t.Errorf("size %d, want %d", got, want)
	}
}

func TestUnwrapSNS(t *testing.T) {
	t.Parallel()
	inner := `{"order":1}`
	wrapped := `{"Type":"Notification","MessageId":"x","TopicArn":"arn:aws:sns:eu-west-1:1:t","Message":"{\"order\":1}","Timestamp":"2026-01-01T00:00:00Z",` +
		`"MessageAttributes":{"a":{"Type":"String","Value":"1"},"n":{"Type":"Number","Value":"2"},"b":{"Type":"Binary","Value":"AAE="}}}`
	body, attributes := unwrapSNS(wrapped, nil)
	want := map[string]types.MessageAttributeValue{
		"a": {DataType: aws.String("String"), StringValue: aws.String("1")}, "n": {DataType: aws.String("Number"), StringValue: aws.String("2")},
		"b": {DataType: aws.String("Binary"), BinaryValue: []byte{0, 1}},
	}
	if diff := cmp.Diff(want, attributes, cmpopts.IgnoreUnexported(types.MessageAttributeValue{})); diff != "" || body != inner {
		t.Errorf("body %q, attributes differ:\n%s", body, diff)
	}
	for _, other := range []string{
		inner, "", "text", `{"Type":"SubscriptionConfirmation","TopicArn":"t","Message":"m"}`, `{"Type":"Notification","Message":"m"}`,
		`{"Records":[{"s3":{}}]}`, strings.Replace(wrapped, "AAE=", "%", 1),
	} {
		if body, attributes := unwrapSNS(other, nil); body != other || len(attributes) > 0 {
			t.Errorf("%s was taken for a notification", other)
		}
	}
	if body, _ := unwrapSNS(wrapped, ours("{}")); body != wrapped {
		t.Error("a message of ours was unwrapped")
	}
}

// FuzzMessage looks for messages that do not come back, or that SQS would refuse.
func FuzzMessage(f *testing.F) {
	f.Add([]byte("body"), "name", "value", "caisson", "{}", false)
	f.Add([]byte{0}, HeaderTypes, `{"a":"Number"}`, "a", "1e3", true)
	f.Fuzz(func(t *testing.T, body []byte, n1, v1, n2, v2 string, isCopy bool) {
		m := queue.Message{Body: body, Headers: map[string]string{n1: v1, n2: v2}}
		extra := meta{}
		if isCopy {
			extra.ID = "m-1"
		}
		w, err := encode(m, extra)
		if err != nil {
			return // headers that are no text
		}
		checkWire(t, w)
		got, _, err := decode(w.body, w.attributes)
		if err != nil || !bytes.Equal(got.Body, body) || !maps.Equal(got.Headers, m.Headers) {
			t.Errorf("sent %+v, got %+v, error %v", m, got, err)
		}
	})
}
