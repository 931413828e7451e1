package sqs

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"math/big"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/caisson-go/caisson/queue"
)

// HeaderTypes is a header that messages of other producers get when they have attributes of other types than String: a JSON object
// of attribute name to type. The headers of such attributes are the number's text, or the bytes in base64. Published again with this
// header, the attributes are as they were.
const HeaderTypes = "sqs-attribute-types"

const typeString = "String"

// headersOf returns the headers that stand for native attributes.
func headersOf(attributes map[string]types.MessageAttributeValue) map[string]string {
	if len(attributes) == 0 {
		return nil
	}
	headers := make(map[string]string, len(attributes)+1)
	other := map[string]string{}
	for name, a := range attributes {
		kind := aws.ToString(a.DataType)
		if strings.HasPrefix(kind, "Binary") {
			headers[name] = base64.StdEncoding.EncodeToString(a.BinaryValue)
		} else {
			headers[name] = aws.ToString(a.StringValue)
		}
		if kind != typeString {
			other[name] = kind
		}
	}
	if len(other) > 0 {
		encoded, err := json.Marshal(other)
		if err != nil { // a map of strings always encodes
			return headers
		}
		headers[HeaderTypes] = string(encoded)
	}
	return headers
}

// attributesOf returns the native attributes that headers stand for, or false if SQS would not take them as such.
func attributesOf(headers map[string]string) (map[string]types.MessageAttributeValue, bool) {
	kinds := map[string]string{}
	if encoded, ok := headers[HeaderTypes]; ok {
		if json.Unmarshal([]byte(encoded), &kinds) != nil {
			return nil, false
		}
		headers = maps.Clone(headers)
		delete(headers, HeaderTypes)
	}
	for name := range kinds {
		if _, ok := headers[name]; !ok {
			return nil, false
		}
	}
	if len(headers) > maxAttributes {
		return nil, false
	}
	attributes := make(map[string]types.MessageAttributeValue, len(headers))
	for name, value := range headers {
		a, ok := attribute(kinds[name], value)
		if !ok || !validAttributeName(name) {
			return nil, false
		}
		attributes[name] = a
	}
	return attributes, true
}

func attribute(kind, value string) (types.MessageAttributeValue, bool) {
	a := types.MessageAttributeValue{DataType: aws.String(kind)}
	base, _, _ := strings.Cut(kind, ".")
	switch base {
	case "":
		a.DataType, a.StringValue = aws.String(typeString), aws.String(value)
	case typeString:
		a.StringValue = aws.String(value)
	case "Number":
		a.StringValue = aws.String(value)
		if _, ok := new(big.Float).SetString(value); !ok {
			return a, false
		}
	case "Binary":
		data, err := base64.StdEncoding.DecodeString(value)
		a.BinaryValue = data
		return a, err == nil && len(data) > 0
	default:
		return a, false
	}
	return a, validText(value)
}

func validAttributeName(name string) bool {
	lower := strings.ToLower(name)
	if name == "" || len(name) > 256 || strings.HasPrefix(lower, "aws.") || strings.HasPrefix(lower, "amazon.") ||
		name[0] == '.' || name[len(name)-1] == '.' || strings.Contains(name, "..") {
		return false
	}
	return plainName(strings.ReplaceAll(name, ".", ""))
}

// attributesSize is what SQS counts for attributes.
func attributesSize(attributes map[string]types.MessageAttributeValue) int {
	size := 0
	for name, a := range attributes {
		size += len(name) + len(aws.ToString(a.DataType)) + len(aws.ToString(a.StringValue)) + len(a.BinaryValue)
	}
	return size
}

func ours(value string) map[string]types.MessageAttributeValue {
	return map[string]types.MessageAttributeValue{
		attributeName: {DataType: aws.String(typeString), StringValue: aws.String(value)},
	}
}

// plainEnvelope returns the value of our attribute if the envelope is all there is to say: what producers in other languages write.
func plainEnvelope(headers map[string]string) (string, bool) {
	value, ok := headers[queue.HeaderEnvelope]
	return value, ok && len(headers) == 1 && validText(value) && !strings.HasPrefix(value, metaPrefix)
}
