package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"operetta.dev/engine/check"
	"operetta.dev/engine/program"
)

func newVet(s streams) *cobra.Command {
	var quiet, edges bool
	cmd := &cobra.Command{
		Use:   "vet [packages]",
		Short: "Check packages and print what is wrong with them",
		Long: `Check packages: that they compile, that every name they refer to exists, that the
components have an order, that no two objects are the same, that predicates can be
decided, and that a CustomResourceDefinition can say their schema.

Each fault is one line: file:line, the path of the field, what is wrong, and what to
write instead. Without packages, all packages at or below the current folder are checked.`,
		Example: `  operetta vet
  operetta vet ./cue/webapp
  operetta vet -q ./cue/... && git commit

  # What depends on what, and under which condition
  operetta vet --edges ./cue/webapp`,
		ValidArgsFunction: folders,
		RunE: func(cmd *cobra.Command, args []string) error {
			dirs, err := expand(args, "./...")
			if err != nil {
				return err
			}
			faults := 0
			for _, dir := range dirs {
				found, err := examine(cmd.Context(), dir, examineAll)
				if cmd.Context().Err() != nil {
					return err
				}
				// A worker that died has found nothing.
				found.Faults = append(found.Faults, faultsOf(err)...)
				printFaults(s.err, found.Faults)
				faults += len(found.Faults)
				if edges {
					printEdges(s.out, found.Edges)
				}
			}
			if !quiet {
				fmt.Fprintf(s.out, "%s, %s\n", count(len(dirs), "package"), count(faults, "fault"))
			}
			if faults > 0 {
				return errReported
			}
			return nil
		},
	}
	cmd.Flags().BoolVarP(&quiet, "quiet", "q", false, "print faults only, and nothing when there are none")
	cmd.Flags().BoolVar(&edges, "edges", false, "print what depends on what: always, or under which condition")
	return cmd
}

// printEdges prints the edges of a package, one a line.
func printEdges(w io.Writer, edges []string) {
	for _, e := range edges {
		fmt.Fprintln(w, e)
	}
}

// staticFaults returns what is wrong with a package whatever the custom resource.
func staticFaults(p *program.Program) program.Faults { return check.Package(p) }

// count returns a number with its noun.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
