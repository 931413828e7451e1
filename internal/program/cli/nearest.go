package cli

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/caisson-go/caisson/internal/program/config"
)

// unknownFlag returns a hint at the flag's new name, or at the flag that was probably meant.
func unknownFlag(cmd *cobra.Command, name string) string {
	if now := config.Renamed(nameOf(cmd) + "--" + name); now != "" {
		return ": it is called " + now[strings.Index(now, "--"):] + " now"
	}
	return nearestFlag(cmd, name)
}

// nameOf is what precedes a flag or a command below cmd, without the program's name.
func nameOf(cmd *cobra.Command) string {
	_, below, nested := strings.Cut(cmd.CommandPath(), " ")
	if !nested {
		return ""
	}
	return below + " "
}

// nearestFlag returns a hint at the flag that was probably meant. cobra knows near names for commands only, so it is shown flags as such.
func nearestFlag(cmd *cobra.Command, name string) string {
	flags := &cobra.Command{SuggestionsMinimumDistance: 2}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		flags.AddCommand(&cobra.Command{Use: f.Name, Hidden: f.Hidden, Run: func(*cobra.Command, []string) {}})
	})
	if near := flags.SuggestionsFor(name); len(near) > 0 {
		return ": did you mean --" + strings.Join(near, " or --") + "?"
	}
	return ""
}
