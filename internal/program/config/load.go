package config

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/go-viper/mapstructure/v2"
	"github.com/spf13/viper"
)

// Sources is where a configuration comes from.
type Sources struct {
	// File is the path of a YAML file. Empty means none. A file that is named must exist.
	File string
	// Env holds variables in the form of os.Environ. Nil means none.
	Env []string
	// Flags holds the flags that were set, by dotted key, for example "concurrency".
	Flags map[string]string
}

// Load reads and checks the configuration. The error is an [*Error] with everything that is wrong, or says why the file cannot be
// read. Warnings are returned in both cases.
func Load(src Sources) (*Config, []Warning, error) {
	var data []byte
	if src.File != "" {
		var err error
		if data, err = os.ReadFile(src.File); err != nil {
			return nil, nil, fmt.Errorf("configuration file: %w", err)
		}
	}
	return load(src.File, data, src.Env, src.Flags)
}

func load(file string, data []byte, env []string, flags map[string]string) (*Config, []Warning, error) {
	r := &reader{entries: map[string][]string{}}
	r.file(file, data)
	r.env(env)
	r.flags(flags)
	if len(r.problems) > 0 {
		return nil, r.warnings, &Error{Problems: r.problems}
	}
	c, err := r.resolve()
	if err != nil {
		return nil, r.warnings, err
	}
	warnings, problems := c.validate()
	warnings = append(r.warnings, warnings...)
	if len(problems) > 0 {
		return nil, warnings, &Error{Problems: problems}
	}
	return c, warnings, nil
}

// flags reads flags by dotted key. They come last, so that they may name entries that no other source has.
func (r *reader) flags(flags map[string]string) {
	for _, key := range slices.Sorted(maps.Keys(flags)) {
		at, l := resolveKey(schema, nil, key)
		if l == nil {
			r.unknown(path{key}, "flag", key, candidates(key))
			continue
		}
		r.entriesOf(at, "flag")
		r.text(at, l, flags[key], Flag, "flag")
	}
}

// resolveKey finds the leaf for rest, the part of a dotted key below at. The name of an entry may contain dots itself: it is what stands
// before the longest key of its section, so that of a.bulkhead.size the name is a.
func resolveKey(nodes []*node, at path, rest string) (path, *leaf) {
	for _, n := range nodes {
		here := at.with(n.key)
		if n.leaf != nil {
			if rest == n.key {
				return here, n.leaf
			}
			continue
		}
		below, ok := strings.CutPrefix(rest, n.key+".")
		if !ok {
			continue
		}
		if !n.named {
			return resolveKey(n.section, here, below)
		}
		for i := range below {
			if below[i] != '.' || i == 0 {
				continue
			}
			if p, l := resolveKey(n.section, here.with(below[:i]), below[i+1:]); l != nil {
				return p, l
			}
		}
		return nil, nil
	}
	return nil, nil
}

// candidates returns every fixed key, and every key that the entry which key leads to could have.
func candidates(key string) []string {
	const entry = "*" // stands for the name of an entry
	var keys []string
	walk(schema, nil, func(path) []string { return []string{entry} }, func(p path, _ *node) {
		section, below, named := strings.Cut(p.String(), "."+entry+".")
		rest, leads := strings.CutPrefix(key, section+".")
		words, depth := strings.Split(rest, "."), strings.Count(below, ".")+1
		switch {
		case !named:
			keys = append(keys, p.String())
		case leads && len(words) > depth:
			if name := strings.Join(words[:len(words)-depth], "."); name != "" {
				keys = append(keys, section+"."+name+"."+below)
			}
		}
	})
	return keys
}

// resolve has viper decide which source wins, and fills the struct.
func (r *reader) resolve() (*Config, error) {
	// Keys are joined by \x1f, so viper's own delimiter must not split names that hold a dot.
	v := viper.NewWithOptions(viper.KeyDelimiter("\x00"))
	names := func(p path) []string { return slices.Sorted(slices.Values(r.entries[p.flat()])) }
	var errs []error
	walk(schema, nil, names, func(p path, n *node) {
		s := &setting{path: p, leaf: n.leaf, origin: Default}
		if n.leaf.def != "" {
			var err error
			if s.value, err = n.leaf.fromText(n.leaf.def); err != nil {
				errs = append(errs, fmt.Errorf("default of %s: %w", p, err))
			}
		}
		v.SetDefault(p.flat(), s)
	})
	for _, s := range r.settings {
		switch s.origin {
		case Flag:
			v.Set(s.path.flat(), s)
		default: // the file comes before the environment, and what is merged later wins
			errs = append(errs, v.MergeConfigMap(map[string]any{s.path.flat(): s}))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	get := func(p path) *setting {
		s, _ := v.Get(p.flat()).(*setting)
		return s
	}
	inherit(names, get)

	c := &Config{}
	tree := map[string]any{}
	for at, entries := range r.entries {
		for _, name := range entries {
			put(tree, append(strings.Split(at, "\x1f"), name), map[string]any{}) // an entry without keys is one too
		}
	}
	walk(schema, nil, names, func(p path, _ *node) {
		s := get(p)
		c.settings = append(c.settings, s.public())
		if s.value != nil {
			put(tree, s.path, s.value)
		}
	})
	dec, err := mapstructure.NewDecoder(&mapstructure.DecoderConfig{Result: c, TagName: "key", ErrorUnused: true})
	if err != nil {
		return nil, fmt.Errorf("configuration decoder: %w", err)
	}
	if err := dec.Decode(tree); err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	return c, nil
}

// inherit fills what the entries of a named section leave unset from the section that their schema names.
func inherit(names func(path) []string, get func(path) *setting) {
	var visit func(nodes []*node, at path)
	visit = func(nodes []*node, at path) {
		for _, n := range nodes {
			here := at.with(n.key)
			if !n.named {
				visit(n.section, here)
				continue
			}
			if n.inherit == "" {
				continue
			}
			for _, name := range names(here) {
				walk(n.section, nil, nil, func(below path, _ *node) {
					from := get(append(strings.Split(n.inherit, "."), below...))
					if s := get(append(here.with(name), below...)); from != nil && s.origin == Default {
						s.value, s.origin, s.where = from.value, Inherited, n.inherit
					}
				})
			}
		}
	}
	visit(schema, nil)
}

// put sets a value in a tree of maps.
func put(tree map[string]any, p path, value any) {
	for _, key := range p[:len(p)-1] {
		below, ok := tree[key].(map[string]any)
		if !ok {
			below = map[string]any{}
			tree[key] = below
		}
		tree = below
	}
	tree[p[len(p)-1]] = value
}
