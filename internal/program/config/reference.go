package config

import "strings"

// Key describes one key, for the reference in docs/configuration.md.
type Key struct {
	// Name is the key with its sections. An entry that users name is shown as <name>, and as * all keys of another section.
	Name string
	// Type says what a value has to be, Default what is in effect without one; empty means nothing, or what Doc says.
	Type, Default string
	// Doc is what the key means.
	Doc string
}

// Keys returns all keys in the order of the configuration. Those that the entries of a section take from another one are told in one line.
func Keys() []Key { return keysBelow(nil, schema, nil, nil) }

// keysBelow appends the keys of nodes. Those in told are left out: the section that they come from has them.
func keysBelow(list []Key, nodes []*node, at path, told []*node) []Key {
	for _, n := range nodes {
		here := at.with(n.key)
		same := find(told, n.key)
		switch {
		case n.leaf != nil && same == nil:
			list = append(list, Key{Name: here.String(), Type: n.leaf.typeName(), Default: n.leaf.def, Doc: n.doc})
		case n.leaf != nil:
		case n.named:
			entry := here.with("<name>")
			list = append(list, Key{Name: entry.String(), Type: "section", Doc: n.doc})
			var from []*node
			if n.inherit != "" {
				from = sectionAt(n.inherit)
				list = append(list, Key{Name: entry.with("*").String(), Type: "section", Doc: "Every key of `" + n.inherit + "`, for this one."})
			}
			list = keysBelow(list, n.section, entry, from)
		case same != nil:
			list = keysBelow(list, n.section, here, same.section)
		default:
			list = keysBelow(list, n.section, here, nil)
		}
	}
	return list
}

// sectionAt returns the keys of a section.
func sectionAt(dotted string) []*node {
	nodes := schema
	for key := range strings.SplitSeq(dotted, ".") {
		nodes = find(nodes, key).section
	}
	return nodes
}

func (l *leaf) typeName() string {
	name := map[string]string{
		"time.Duration": "duration", "schedule.Backoff": "backoff", "config.Secret": "secret", "[]config.Secret": "list of secrets",
		"config.SecretURL": "URL", "[]config.SecretURL": "list of URLs", "map[string]config.Secret": "map", "[]string": "list", "[]int": "list of numbers", "[]config.Queue": "list of queues",
		"int": "whole number", "float64": "number", "bool": "true or false", "string": "text",
	}[l.typ.String()]
	switch {
	case len(l.enum) > 0:
		return "`" + strings.Join(l.enum, "`, `") + "`"
	case l.min != "" && l.max != "":
		return name + ", " + l.min + " to " + l.max
	case l.min != "":
		return name + ", at least " + l.min
	}
	return name
}
