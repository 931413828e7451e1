package cli

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

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
