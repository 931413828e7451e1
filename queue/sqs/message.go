package sqs

import (
	"encoding/base64"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/caisson-go/caisson/queue"
)

// wire is a message as SQS carries it.
type wire struct {
	body       string
	attributes map[string]types.MessageAttributeValue
}

func (w wire) size() int { return len(w.body) + attributesSize(w.attributes) }

// encode returns m for the wire. extra is what the driver has to say beside the headers; its zero value is nothing.
//
// Without anything of ours the headers are native attributes, if SQS takes them; with nothing but an envelope the attribute is the envelope
// itself. All else is folded into our one attribute.
func encode(m queue.Message, extra meta) (wire, error) {
	w := wire{}
	w.body, extra.Body = encodeBody(m.Body)
	if extra.Body == "" && !extra.isCopy() {
		if value, ok := plainEnvelope(m.Headers); ok {
			w.attributes = ours(value)
			return w, nil
		}
		if _, ok := m.Headers[queue.HeaderEnvelope]; !ok {
			if native, ok := attributesOf(m.Headers); ok {
				w.attributes = native
				return w, nil
			}
		}
	}
	extra.Headers = m.Headers
	value, err := extra.encode()
	if err != nil {
		return wire{}, err
	}
	w.attributes = ours(value)
	return w, nil
}

func encodeBody(body []byte) (text, how string) {
	if len(body) == 0 {
		return bodyEmpty, bodyEmpty // SQS refuses an empty body
	}
	if text = string(body); validText(text) && !beyondBMP(text) {
		return text, ""
	}
	return base64.StdEncoding.EncodeToString(body), bodyBase64
}

// decode is the reverse of encode.
func decode(body string, attributes map[string]types.MessageAttributeValue) (queue.Message, meta, error) {
	a, ok := attributes[attributeName]
	m, isMeta := decodeMeta(aws.ToString(a.StringValue))
	if !ok || !isMeta {
		return queue.Message{Body: []byte(body), Headers: headersOf(attributes)}, meta{}, nil
	}
	headers := m.Headers
	m.Headers = nil
	switch m.Body {
	case "":
		return queue.Message{Body: []byte(body), Headers: headers}, m, nil
	case bodyEmpty:
		return queue.Message{Headers: headers}, m, nil
	case bodyBase64:
		data, err := base64.StdEncoding.DecodeString(body)
		if err != nil {
			return queue.Message{}, meta{}, fmt.Errorf("the body is marked as base64 and is not: %w", err)
		}
		return queue.Message{Body: data, Headers: headers}, m, nil
	}
	return queue.Message{}, meta{}, fmt.Errorf("the body is marked as %q, which this version does not know", m.Body)
}
