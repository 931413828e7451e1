package sqs

import (
	"encoding/base64"
	"encoding/json"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// notification is what SNS puts around a message that it delivers to a queue without raw delivery.
type notification struct {
	Type              string
	TopicArn          string
	Message           *string
	MessageAttributes map[string]struct{ Type, Value string }
}

// unwrapSNS returns the message inside of a notification, with its attributes. Anything else is returned as it is.
func unwrapSNS(body string, attributes map[string]types.MessageAttributeValue) (string, map[string]types.MessageAttributeValue) {
	if _, ok := attributes[attributeName]; ok {
		return body, attributes // ours: it came directly, or was unwrapped before
	}
	var n notification
	if json.Unmarshal([]byte(body), &n) != nil || n.Type != "Notification" || n.TopicArn == "" || n.Message == nil {
		return body, attributes
	}
	inner := make(map[string]types.MessageAttributeValue, len(n.MessageAttributes))
	for name, a := range n.MessageAttributes {
		v := types.MessageAttributeValue{DataType: aws.String(a.Type), StringValue: aws.String(a.Value)}
		if a.Type == "Binary" {
			data, err := base64.StdEncoding.DecodeString(a.Value)
			if err != nil {
				return body, attributes
			}
			v.StringValue, v.BinaryValue = nil, data
		}
		inner[name] = v
	}
	return *n.Message, inner
}
