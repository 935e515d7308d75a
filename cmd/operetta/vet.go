package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/crd"
	"operetta.dev/engine/crd/conform"
	"operetta.dev/engine/program"
	"operetta.dev/engine/vet"
)

func newVet(s streams) *cobra.Command {
	var v vetting
	cmd := &cobra.Command{
		Use:   "vet [packages]",
		Short: "Check packages and print what is wrong with them",
		Long: `Check packages: that they compile, that every name they refer to exists, that the
components have an order, that no two objects are the same, that predicates can be
decided, that objects have the fields and values of their kinds, and that the API server
takes the CustomResourceDefinition of their schema.

What objects are is known from the complete Kubernetes types, for those that are made
from one, as in appsv1.#Deployment & {...}.

Each fault is one line: file:line, the path of the field, what is wrong, and what to
write instead. A warning is one as well, of what is right and probably not meant: a status,
or an object that is no Secret, into which what a Secret holds is copied; or work that a
user can make as long as they like, as list.Range over a number without a maximum; or an
object of a kind of which nobody says whether it is namespaced: Kubernetes' own kinds are
known, and others by their CustomResourceDefinition, which -f takes. It makes the command
fail with --strict only. Without packages, all packages at or below the
current folder are checked.`,
		Example: `  operetta vet
  operetta vet ./cue/webapp
  operetta vet -q ./cue/... && git commit

  # Warnings fail as well, as a pipeline wants it
  operetta vet --strict ./cue/...

  # What depends on what, and under which condition
  operetta vet --edges ./cue/webapp`,
		ValidArgsFunction: folders,
		RunE: func(cmd *cobra.Command, args []string) error {
			return v.run(cmd.Context(), s, args)
		},
	}
	cmd.Flags().BoolVarP(&v.quiet, "quiet", "q", false, "print faults only, and nothing when there are none")
	cmd.Flags().BoolVar(&v.strict, "strict", false, "fail because of warnings as well")
	cmd.Flags().BoolVar(&v.edges, "edges", false, "print what depends on what: always, or under which condition")
	cmd.Flags().StringArrayVarP(&v.files, "filename", "f", nil, "file with CustomResourceDefinitions of kinds that the packages render; - is the standard input")
	if err := cmd.MarkFlagFilename("filename", "yaml", "yml", "json"); err != nil {
		panic(err) // the flag was added above
	}
	return cmd
}

// A vetting is what vet is asked for.
type vetting struct {
	quiet, edges, strict bool
	files                []string
}

// scopes returns where the objects of the kinds live that are defined in the files.
func (v vetting) scopes(ctx context.Context, in io.Reader) (vet.Scopes, error) {
	out := vet.Scopes{}
	for _, file := range v.files {
		all, err := readDocuments(ctx, file, in)
		if err != nil {
			return nil, err
		}
		for _, definition := range definitionsIn(all) {
			kind, scope, _ := cluster.DefinedBy(definition)
			out[kind] = scope
		}
	}
	return out, nil
}

// run checks packages and prints what is found.
func (v vetting) run(ctx context.Context, s streams, args []string) error {
	dirs, err := expand(args, "./...")
	if err != nil {
		return err
	}
	scopes, err := v.scopes(ctx, s.in)
	if err != nil {
		return err
	}
	faults, warnings := 0, 0
	for _, dir := range dirs {
		found, err := examine(ctx, dir, examineAll, scopes)
		if ctx.Err() != nil {
			return err
		}
		// A worker that died has found nothing.
		found.Faults = append(found.Faults, faultsOf(err)...)
		printFaults(s.err, found.Faults)
		faults += len(found.Faults)
		if v.edges {
			printEdges(s.out, found.Edges)
		}
		if asked := append(found.Warnings, found.Unknown...); !v.quiet || v.strict {
			printWarnings(s.err, asked)
			warnings += len(asked)
		}
	}
	if !v.quiet {
		printLine(s.out, "%s", summary(len(dirs), faults, warnings))
	}
	if faults > 0 || v.strict && warnings > 0 {
		return errReported
	}
	return nil
}

// printEdges prints the edges of a package, one a line.
func printEdges(w io.Writer, edges []string) {
	for _, e := range edges {
		printLine(w, "%s", e)
	}
}

// summary counts what was found.
func summary(packages, faults, warnings int) string {
	text := count(packages, "package") + ", " + count(faults, "fault")
	if warnings > 0 {
		text += ", " + count(warnings, "warning")
	}
	return text
}

// printWarnings prints one warning a line.
func printWarnings(w io.Writer, warnings program.Faults) {
	for _, f := range warnings {
		printLine(w, "%s: warning: %s", f.Position, program.Fault{Path: f.Path, Message: f.Message, Hint: f.Hint}.Error())
	}
}

// refused returns why an API server would refuse the CustomResourceDefinition of a package,
// or nil. It is asked by its own code, without a server.
func refused(def crd.Definition, generated *apiextensionsv1.CustomResourceDefinition) error {
	errs, err := conform.Errors(generated)
	if err != nil {
		return err
	}
	return crd.Refused(def, errs)
}

// count returns a number with its noun.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
