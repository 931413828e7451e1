package architecture

import (
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"strings"
	"unicode"
)

// retired holds words that the glossary (docs/glossary.md) has another one for, and which. They stand in no identifier.
var retired = map[string]string{
	"sit": "acquire", "seat": "slot of the bulkhead", "hear": "record", "heard": "recorded", "heart": "heartbeat", "beat": "heartbeat", "pulse": "heartbeat",
	"patience": "deadline or timeout", "hurry": "expire", "crew": "goroutines of a slot", "board": "status store", "keeper": "AutoDisabler", "fate": "status",
	"standing": "status", "evidence": "diagnosis", "flight": "inFlight", "strays": "orphaned claims", "passage": "batch", "tempo": "pacing",
	"trouble": "degraded", "voice": "result", "task": "job",
}

// pairs are words that are retired alone and stay beside another: what is in flight.
var pairs = []string{"inflight"}

// Retired returns the declared identifiers of a file that hold a retired word, one line each.
func Retired(fset *token.FileSet, file *ast.File) []string {
	var found []string
	seen := map[string]bool{}
	complain := func(id *ast.Ident) {
		if id == nil || seen[id.Name] {
			return
		}
		seen[id.Name] = true
		for _, word := range retiredIn(id.Name) {
			found = append(found, fmt.Sprintf("%s: %s: the word is %s, not %s (docs/glossary.md)",
				fset.Position(id.Pos()).Filename, id.Name, retired[word], word))
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			complain(n.Name)
		case *ast.TypeSpec:
			complain(n.Name)
		case *ast.ValueSpec:
			for _, id := range n.Names {
				complain(id)
			}
		case *ast.Field:
			for _, id := range n.Names {
				complain(id)
			}
		case *ast.AssignStmt:
			if n.Tok == token.DEFINE {
				for _, e := range n.Lhs {
					if id, ok := e.(*ast.Ident); ok {
						complain(id)
					}
				}
			}
		}
		return true
	})
	return found
}

func retiredIn(name string) []string {
	var found []string
	words := split(name)
	for i, word := range words {
		if _, ok := retired[word]; !ok {
			continue
		}
		if i > 0 && slices.Contains(pairs, words[i-1]+word) {
			continue
		}
		found = append(found, word)
	}
	return found
}

// split cuts an identifier into its words, in lower case.
func split(name string) []string {
	var words []string
	start := 0
	runes := []rune(name)
	for i := 1; i <= len(runes); i++ {
		end := i == len(runes) || runes[i] == '_' || unicode.IsUpper(runes[i]) && (!unicode.IsUpper(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1]))
		if end {
			if word := strings.Trim(string(runes[start:i]), "_0123456789"); word != "" {
				words = append(words, strings.ToLower(word))
			}
			start = i
		}
	}
	return words
}
