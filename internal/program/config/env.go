package config

import (
	"fmt"
	"slices"
	"strings"
)

// Prefix starts the name of every variable.
const Prefix = "CAISSON_"

// FileVariable names the configuration file where no flag does. It is read by the programs.
const FileVariable = Prefix + "CONFIG"

// FileOf returns file, or the one that the variables name where it is empty.
func FileOf(file string, env []string) string {
	for _, entry := range env {
		if name, value, _ := strings.Cut(entry, "="); name == FileVariable && file == "" {
			file = value
		}
	}
	return file
}

// variable is the name of the variable for a key: CAISSON_ADMIN_PASSWORD for admin.password.
func variable(p path) string { return Prefix + shout(p.String()) }

// SameVariable reports whether variables cannot tell two names apart, as email.send and email_send.
func SameVariable(a, b string) bool { return shout(a) == shout(b) }

// shout turns a key or name into its part of a variable: upper case, everything but letters and digits as _.
func shout(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return r - 'a' + 'A'
		case r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
			return r
		}
		return '_'
	}, s)
}

// env reads variables in the form of os.Environ. It comes after the file, whose names it may override.
func (r *reader) env(environ []string) {
	for _, entry := range slices.Sorted(slices.Values(environ)) {
		name, text, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(name, Prefix) || name == FileVariable || text == "" {
			continue // an empty variable is the same as none
		}
		at, l, err := resolveVariable(schema, nil, strings.TrimPrefix(name, Prefix), r.entries)
		switch {
		case err != nil:
			r.problem(nil, "variable "+name, "%s", err)
		case l == nil && retiredVariable(name) != "":
			r.problem(nil, "variable "+name, "%s", retiredVariable(name))
		case l == nil:
			r.warnings = append(r.warnings, Warning{Key: name, Message: "no key has this variable: " + r.suggest(name)})
		default:
			r.entriesOf(at, "variable "+name)
			r.text(at, l, text, Env, "variable "+name)
		}
	}
}

// text reads a value that is given as text.
func (r *reader) text(at path, l *leaf, text string, origin Origin, where string) {
	v, err := l.fromText(text)
	if err != nil {
		r.problem(at, where, "%s", err)
		return
	}
	r.settings = append(r.settings, &setting{path: at, leaf: l, value: v, origin: origin, where: where})
}

// resolveVariable finds the leaf for rest, the part of a variable's name below at. Below a named section the entry's name comes
// first: that of a known entry, or else, for a new one, what stands before a key of the section, in lower case.
func resolveVariable(nodes []*node, at path, rest string, known map[string][]string) (path, *leaf, error) {
	for _, n := range nodes {
		here, upper := at.with(n.key), shout(n.key)
		if n.leaf != nil {
			if rest == upper {
				return here, n.leaf, nil
			}
			continue
		}
		below, ok := strings.CutPrefix(rest, upper+"_")
		if !ok {
			continue
		}
		resolve := resolveVariable
		if n.named {
			resolve = func(nodes []*node, at path, rest string, known map[string][]string) (path, *leaf, error) {
				return resolveEntry(nodes, at, rest, known)
			}
		}
		if p, l, err := resolve(n.section, here, below, known); l != nil || err != nil {
			return p, l, err
		}
	}
	return nil, nil, nil
}

func resolveEntry(nodes []*node, at path, rest string, known map[string][]string) (path, *leaf, error) {
	var found []path
	var foundLeaf *leaf
	for _, name := range known[at.flat()] {
		if below, ok := strings.CutPrefix(rest, shout(name)+"_"); ok {
			if p, l, _ := resolveVariable(nodes, at.with(name), below, known); l != nil {
				found, foundLeaf = append(found, p), l
			}
		}
	}
	switch len(found) {
	case 1:
		return found[0], foundLeaf, nil
	case 0:
	default:
		return nil, nil, fmt.Errorf("it could mean %s or %s: set them in the file", found[0], found[1])
	}
	// The longest key at the end is meant: of MY_BULKHEAD_SIZE the name is my, not my_bulkhead.
	for i := range len(rest) {
		if rest[i] != '_' || i == 0 {
			continue
		}
		name := strings.ToLower(rest[:i])
		if p, l, _ := resolveVariable(nodes, at.with(name), rest[i+1:], known); l != nil {
			return p, l, nil
		}
	}
	return nil, nil, nil
}

// entriesOf notes the entry that a path leads through.
func (r *reader) entriesOf(p path, where string) {
	nodes := schema
	for i, key := range p {
		n := find(nodes, key)
		if n.named {
			r.entry(p[:i+1], p[i+1], where)
			return // named sections do not nest
		}
		nodes = n.section
	}
}

// suggest names the variable nearest to name.
func (r *reader) suggest(name string) string {
	candidates := []string{FileVariable}
	walk(schema, nil, func(p path) []string { return r.entries[p.flat()] }, func(p path, _ *node) {
		candidates = append(candidates, variable(p))
	})
	if best := nearest(name, candidates); best != "" {
		return "did you mean " + best + "?"
	}
	return "variables are " + Prefix + " and the key in upper case with _ for dots, for example " + variable(path{"admin", "addr"})
}
