package config

import (
	"errors"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// yaml11 are plain words that other YAML readers take for truth values or for nothing.
var yaml11 = []string{"y", "yes", "n", "no", "on", "off", "true", "false", "null", "~"}

// fromYAML converts a node of the file to the leaf's type. What YAML would convert by itself is refused.
func (l *leaf) fromYAML(n *yaml.Node) (any, error) {
	switch n.Kind {
	case yaml.ScalarNode:
		if err := l.refuseScalar(n); err != nil {
			return nil, err
		}
		return l.fromText(n.Value)
	case yaml.SequenceNode:
		return l.fromSequence(n)
	case yaml.MappingNode:
		if l.typ == headersType {
			return headersFromMapping(n)
		}
	}
	return nil, errors.New("a map does not belong here: " + l.wants())
}

// refuseScalar refuses scalars whose YAML type does not suit the leaf.
func (l *leaf) refuseScalar(n *yaml.Node) error {
	if n.Tag == "!!null" {
		return errors.New("it has no value: give it one or remove the key")
	}
	switch l.wants() {
	case wantsNumber:
		if n.Tag != "!!int" && n.Tag != "!!float" {
			return fmt.Errorf("%q is not a number: write it without quotes", n.Value)
		}
		return nil
	case wantsTruth:
		if n.Tag != "!!bool" {
			return fmt.Errorf("%q is neither true nor false: write one of them without quotes", n.Value)
		}
		return nil
	case wantsDuration:
		return nil // the parser of durations names what is missing
	case wantsNumbers:
		return nil
	}
	return refuseText(n, l.secret)
}

// refuseText refuses plain scalars that are not text for every YAML reader.
func refuseText(n *yaml.Node, secret bool) error {
	shown := n.Value
	if secret {
		shown = mask
	}
	plain := n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) == 0
	if !plain {
		return nil
	}
	for _, word := range yaml11 {
		if strings.EqualFold(n.Value, word) {
			return fmt.Errorf("%s is a truth value or nothing in YAML, not text: put it in quotes if it is meant as text", shown)
		}
	}
	switch {
	case n.Tag == "!!str":
		return nil
	case secret: // the tag may be its beginning
		return fmt.Errorf("%s is not text in YAML: put it in quotes if it is meant as text", shown)
	default:
		return fmt.Errorf("%s is not text in YAML (%s): put it in quotes if it is meant as text", shown, strings.TrimPrefix(n.Tag, "!!"))
	}
}

func (l *leaf) isList() bool {
	return l.typ == stringsType || l.typ == secretsType || l.typ == urlsType || l.typ == intsType || l.typ == queuesType
}

// fromSequence converts a list.
func (l *leaf) fromSequence(n *yaml.Node) (any, error) {
	if !l.isList() {
		return nil, errors.New("a list does not belong here: " + l.wants())
	}
	var texts []string
	var queues []Queue
	for i, item := range n.Content {
		item = resolve(item)
		if l.typ == queuesType && item.Kind == yaml.MappingNode {
			q, err := queueFromMapping(item)
			if err != nil {
				return nil, fmt.Errorf("item %d: %w", i+1, err)
			}
			queues = append(queues, q)
			continue
		}
		if item.Kind != yaml.ScalarNode || item.Tag == "!!null" {
			return nil, fmt.Errorf("item %d is not a single value", i+1)
		}
		if l.typ != intsType {
			if err := refuseText(item, l.secret); err != nil {
				return nil, fmt.Errorf("item %d: %w", i+1, err)
			}
		}
		texts = append(texts, item.Value)
		if l.typ == queuesType {
			q, err := parseQueue(strings.TrimSpace(item.Value))
			if err != nil {
				return nil, fmt.Errorf("item %d: %w", i+1, err)
			}
			queues = append(queues, q)
		}
	}
	switch l.typ {
	case queuesType:
		return queues, nil
	case urlsType:
		return urlsOf(texts), nil
	case intsType:
		return parseInts(texts)
	case secretsType:
		var secrets []Secret
		for _, t := range texts {
			secrets = append(secrets, Secret{t})
		}
		return secrets, nil
	}
	return texts, nil
}

func headersFromMapping(n *yaml.Node) (map[string]Secret, error) {
	headers := map[string]Secret{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i].Value, resolve(n.Content[i+1])
		if _, twice := headers[key]; twice {
			return nil, fmt.Errorf("header %q is given twice", key)
		}
		if value.Kind != yaml.ScalarNode {
			return nil, fmt.Errorf("header %q is not a single value", key)
		}
		if err := refuseText(value, true); err != nil {
			return nil, fmt.Errorf("header %q: %w", key, err)
		}
		headers[key] = Secret{value.Value}
	}
	return headers, nil
}

// What a leaf asks for, for errors and for the reference.
const (
	wantsNumber   = "a number"
	wantsTruth    = "true or false"
	wantsDuration = "a duration such as 30s, 5m or 14d"
	wantsNumbers  = "a list of numbers"
	wantsList     = "a list, or values separated by commas or spaces"
	wantsQueues   = "a list of queues: name, name=weight, or a map with name and weight"
	wantsHeaders  = "a map of header names and values"
	wantsBackoff  = "a backoff such as exponential(1s, 2, 1h) or fixed(30s, 2m, 10m)"
	wantsText     = "text"
)

func (l *leaf) wants() string {
	switch l.typ {
	case durationType:
		return wantsDuration
	case policyType:
		return wantsBackoff
	case intsType:
		return wantsNumbers
	case stringsType, secretsType, urlsType:
		return wantsList
	case queuesType:
		return wantsQueues
	case headersType:
		return wantsHeaders
	}
	switch l.typ.Kind().String() {
	case "int", "float64":
		return wantsNumber
	case "bool":
		return wantsTruth
	}
	return wantsText
}

// resolve follows an alias to what it stands for.
func resolve(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}
