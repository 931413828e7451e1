package config

import (
	"reflect"
	"strings"
	"time"

	"github.com/caisson-go/caisson/schedule"
)

// node is one key of the schema: a leaf, a section with fixed keys, or a section whose entries the user names.
type node struct {
	key, doc string
	// leaf is set for leaves.
	leaf *leaf
	// section holds the keys of a section, or of each entry of a named one.
	section []*node
	named   bool
	// inherit is the dotted path of the section from which entries of a named one take what they leave unset.
	inherit string
}

// leaf is one value.
type leaf struct {
	typ      reflect.Type
	def      string // "" for the zero value
	enum     []string
	min, max string
	secret   bool
}

var (
	durationType = reflect.TypeFor[time.Duration]()
	policyType   = reflect.TypeFor[schedule.Backoff]()
	secretType   = reflect.TypeFor[Secret]()
	secretsType  = reflect.TypeFor[[]Secret]()
	urlType      = reflect.TypeFor[SecretURL]()
	urlsType     = reflect.TypeFor[[]SecretURL]()
	headersType  = reflect.TypeFor[map[string]Secret]()
	stringsType  = reflect.TypeFor[[]string]()
	intsType     = reflect.TypeFor[[]int]()
	queuesType   = reflect.TypeFor[[]Queue]()
)

// schema is the tree of all keys.
var schema = adopt(build(reflect.TypeFor[Config]()), fromCode())

// isSection reports whether t is a struct of keys and not a value.
func isSection(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && t != policyType && t != secretType && t != urlType
}

// build reads the tags of t.
func build(t reflect.Type) []*node {
	var nodes []*node
	for i := range t.NumField() {
		f := t.Field(i)
		key := f.Tag.Get("key")
		if key == "" {
			continue
		}
		n := &node{key: key, doc: f.Tag.Get("doc")}
		switch {
		case isSection(f.Type):
			n.section = build(f.Type)
		case f.Type.Kind() == reflect.Map && isSection(f.Type.Elem()):
			n.named, n.section, n.inherit = true, withoutDefaults(build(f.Type.Elem())), f.Tag.Get("inherit")
		default:
			n.leaf = &leaf{
				typ: valueType(f.Type), def: f.Tag.Get("default"), min: f.Tag.Get("min"), max: f.Tag.Get("max"),
				secret: f.Type == secretType || f.Type == secretsType || f.Type == urlType || f.Type == urlsType || f.Type == headersType,
			}
			if enum := f.Tag.Get("enum"); enum != "" {
				n.leaf.enum = strings.Split(enum, ",")
			}
		}
		nodes = append(nodes, n)
	}
	return nodes
}

// valueType is the type of a leaf's value: a pointer tells unset from zero, and points at it.
func valueType(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer {
		return t.Elem()
	}
	return t
}

// withoutDefaults clears the defaults below a named section: what an entry leaves out is taken from elsewhere.
func withoutDefaults(nodes []*node) []*node {
	for _, n := range nodes {
		if n.leaf != nil {
			n.leaf.def = ""
		}
		withoutDefaults(n.section)
	}
	return nodes
}

// find returns the node called key.
func find(nodes []*node, key string) *node {
	for _, n := range nodes {
		if n.key == key {
			return n
		}
	}
	return nil
}

func keysOf(nodes []*node) []string {
	keys := make([]string, len(nodes))
	for i, n := range nodes {
		keys[i] = n.key
	}
	return keys
}

// path is where a value lives. Names that users choose may contain dots, so it is a list.
type path []string

func (p path) with(key string) path { return append(p[:len(p):len(p)], key) }

// String joins the path for people.
func (p path) String() string { return strings.Join(p, ".") }

// flat joins the path for viper, which folds case.
func (p path) flat() string { return strings.Join(p, "\x1f") }

// walk calls visit for every leaf below nodes, in the order of the schema. names gives the entries of a named section.
func walk(nodes []*node, at path, names func(path) []string, visit func(path, *node)) {
	for _, n := range nodes {
		here := at.with(n.key)
		switch {
		case n.leaf != nil:
			visit(here, n)
		case n.named:
			for _, name := range names(here) {
				walk(n.section, here.with(name), names, visit)
			}
		default:
			walk(n.section, here, names, visit)
		}
	}
}
