package reference

import (
	"fmt"
	"slices"
	"strings"
	"sync"
)

// tree is the program with all its commands.
var tree = sync.OnceValues(func() (command, error) { return help() })

// sharedFlags lists the flags that every command takes.
func sharedFlags() (string, error) {
	root, err := tree()
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString("\n| flag | what |\n|---|---|\n")
	for _, f := range root.flags {
		fmt.Fprintf(&b, "| %s | %s |\n", f.shown(), cell(f.meaning))
	}
	b.WriteString("\n")
	return b.String(), nil
}

// allCommands lists the commands at the top, each with a link to its chapter.
func allCommands() (string, error) {
	root, err := tree()
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString("\n| command | what it does |\n|---|---|\n")
	for _, c := range root.children {
		fmt.Fprintf(&b, "| [`%s`](#%s-%s) | %s |\n", c.name(), program, c.name(), cell(c.short))
	}
	b.WriteString("\n")
	return b.String(), nil
}

// commandTable is the table of one command: those below it, and the flags of all.
func commandTable(c command) (string, error) {
	leaves := c.leaves()
	for i := range leaves {
		if len(c.children) > 0 {
			leaves[i].flags = append(slices.Clone(leaves[i].flags), c.flags...) // those of the group hold for all below it
		}
	}
	var b strings.Builder
	b.WriteString("\n| command | what it does |\n|---|---|\n")
	for _, leaf := range leaves {
		fmt.Fprintf(&b, "| `%s` | %s |\n", cell(strings.TrimPrefix(leaf.usage, program+" ")), cell(leaf.short))
	}
	b.WriteString("\n")
	flagRows(&b, leaves)
	return b.String(), nil
}

// flagRows lists each flag once, with the commands that take it where that is not all of them.
func flagRows(b *strings.Builder, leaves []command) {
	var order []flag
	takers := make(map[flag][]string)
	for _, leaf := range leaves {
		for _, f := range leaf.flags {
			if takers[f] == nil {
				order = append(order, f)
			}
			takers[f] = append(takers[f], "`"+leaf.name()+"`")
		}
	}
	if len(order) == 0 {
		return
	}
	alone := len(leaves) == 1
	if alone {
		b.WriteString("| flag | what |\n|---|---|\n")
	} else {
		b.WriteString("| flag | of | what |\n|---|---|---|\n")
	}
	for _, f := range order {
		switch {
		case alone:
			fmt.Fprintf(b, "| %s | %s |\n", f.shown(), cell(f.meaning))
		case len(takers[f]) == len(leaves):
			fmt.Fprintf(b, "| %s | all | %s |\n", f.shown(), cell(f.meaning))
		default:
			fmt.Fprintf(b, "| %s | %s | %s |\n", f.shown(), strings.Join(takers[f], ", "), cell(f.meaning))
		}
	}
	b.WriteString("\n")
}

// name is the command's last word.
func (c command) name() string { return c.path[len(c.path)-1] }

// leaves are the commands that do something: c itself, or those below it.
func (c command) leaves() []command {
	if len(c.children) == 0 {
		return []command{c}
	}
	var list []command
	for _, child := range c.children {
		list = append(list, child.leaves()...)
	}
	return list
}

func (f flag) shown() string {
	if f.value == "" {
		return "`--" + f.name + "`"
	}
	return "`--" + f.name + " " + f.value + "`"
}

// cell is text for a cell of a table.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }
