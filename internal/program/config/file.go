package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"
)

// reader collects settings and problems from all sources.
type reader struct {
	settings []*setting
	entries  map[string][]string // names of the entries of named sections, by the section's flat path
	problems []Problem
	warnings []Warning
}

// setting is one value from one source.
type setting struct {
	path   path
	leaf   *leaf
	value  any
	origin Origin
	// where is the file and line, the variable or the flag.
	where string
}

func (r *reader) problem(at path, where, format string, args ...any) {
	r.problems = append(r.problems, Problem{Key: at.String(), Where: where, Message: fmt.Sprintf(format, args...)})
}

// unknown refuses a key that nobody knows by now.
func (r *reader) unknown(at path, where, word string, known []string) {
	if retired := retiredKey(at.String()); retired != "" {
		r.problem(at, where, "%s", retired)
		return
	}
	r.problem(at, where, "unknown key: %s", didYouMean(word, known))
}

// file reads a YAML document.
func (r *reader) file(name string, data []byte) {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, more yaml.Node
	if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
		return // an empty file sets nothing
	} else if err != nil {
		r.problem(nil, name, "cannot be read as YAML: %s", unreadable(err))
		return
	}
	if err := dec.Decode(&more); !errors.Is(err, io.EOF) {
		r.problem(nil, name, "holds more than one document: only one is read, remove the line --- and what does not belong")
	}
	root := resolve(doc.Content[0])
	if root.Kind == yaml.ScalarNode && root.Tag == "!!null" {
		return
	}
	r.section(name, nil, schema, root)
}

// unknownAnchor is the one error of the YAML reader that quotes the file, and what it quotes may be a secret that begins with *.
var unknownAnchor = regexp.MustCompile(`unknown anchor '.*' referenced`)

func unreadable(err error) string {
	return unknownAnchor.ReplaceAllString(strings.TrimPrefix(err.Error(), "yaml: "),
		"a value that begins with * is an alias, and its anchor (&) is missing: put it in quotes if it is meant as text")
}

// entry notes that the named section at has an entry called name.
func (r *reader) entry(at path, name, where string) {
	known := r.entries[at.flat()]
	if slices.Contains(known, name) {
		return
	}
	for _, other := range known {
		if strings.ToLower(name) == strings.ToLower(other) { //nolint:staticcheck // viper folds case with ToLower; EqualFold differs from it for a few letters
			r.problem(at.with(name), where, "differs from %s in case only: rename one of them", other)
		}
	}
	if strings.TrimSpace(name) == "" || strings.ContainsFunc(name, unicode.IsControl) {
		r.problem(at, where, "%q is no name for an entry: use printable characters", name)
	}
	r.entries[at.flat()] = append(known, name)
}

// section reads a map whose keys are fixed.
func (r *reader) section(file string, at path, nodes []*node, n *yaml.Node) {
	r.mapping(file, at, n, func(key string, value *yaml.Node, where string) {
		child := find(nodes, key)
		switch {
		case child == nil:
			r.unknown(at.with(key), where, key, keysOf(nodes))
		case child.leaf != nil:
			r.leaf(at.with(key), child.leaf, value, where)
		case child.named:
			r.mapping(file, at.with(key), value, func(name string, entry *yaml.Node, where string) {
				r.entry(at.with(key), name, where)
				r.section(file, at.with(key).with(name), child.section, entry)
			})
		default:
			r.section(file, at.with(key), child.section, value)
		}
	})
}

// mapping calls visit for each key of a map. It refuses what is no map, and keys given twice.
func (r *reader) mapping(file string, at path, n *yaml.Node, visit func(key string, value *yaml.Node, where string)) {
	n = resolve(n)
	where := func(n *yaml.Node) string { return fmt.Sprintf("%s line %d", file, n.Line) }
	switch {
	case n.Kind == yaml.ScalarNode && n.Tag == "!!null":
		return // a section without keys
	case n.Kind != yaml.MappingNode:
		r.problem(at, where(n), "is a section: write its keys below it, indented")
		return
	}
	first := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], resolve(n.Content[i+1])
		switch line, twice := first[key.Value]; {
		case key.Kind != yaml.ScalarNode:
			r.problem(at, where(key), "a key must be a single word")
			continue
		case key.Tag == "!!merge":
			r.problem(at, where(key), "merge keys (<<) are not supported: write the keys out")
			continue
		case twice:
			r.problem(at.with(key.Value), where(key), "is given twice, on lines %d and %d: keep one of them", line, key.Line)
			continue
		}
		first[key.Value] = key.Line
		visit(key.Value, value, where(key))
	}
}

func (r *reader) leaf(at path, l *leaf, n *yaml.Node, where string) {
	v, err := l.fromYAML(n)
	if err != nil {
		r.problem(at, where, "%s", err)
		return
	}
	r.settings = append(r.settings, &setting{path: at, leaf: l, value: v, origin: File, where: where})
}
