package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

const rootLong = `Operetta runs Kubernetes operators that are written in CUE.

An operator is a package: a folder of CUE files with the schema of a custom resource, the
components that it consists of, their dependencies, and the predicates that tell when each
component is healthy. There is no Go to write, no code to generate and no image to build.

The commands take packages as folders, such as ./cue/webapp, or as patterns: ./... stands
for every operator package in or below the current folder.`

const rootExample = `  # Check a package. Each fault is printed with its file and line.
  operetta vet ./cue/webapp

  # Print the objects for a custom resource. This needs no cluster.
  operetta render ./cue/webapp -f config/samples/webapp.yaml

  # Install the CRD.
  operetta crd ./cue/webapp | kubectl apply -f -`

// exitCodes ends the help of every command: scripts depend on it.
const exitCodes = `
Exit codes:
  0  success
  1  the package, the custom resource or the cluster has a fault, or is not ready
  2  the command line is wrong`

// newRoot returns the command with all its subcommands.
func newRoot(s streams) *cobra.Command {
	root := &cobra.Command{
		Use:           "operetta",
		Short:         "Run Kubernetes operators that are written in CUE",
		Long:          rootLong,
		Example:       rootExample,
		SilenceErrors: true, // report prints them
		SilenceUsage:  true, // a page of help hides the error above it

		SuggestionsMinimumDistance: 2,
		DisableFlagsInUseLine:      true,
		Args:                       usage(noCommand),
		RunE:                       func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetIn(s.in)
	root.SetOut(s.out)
	root.SetErr(s.err)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.SetUsageTemplate(root.UsageTemplate() + exitCodes + "\n")
	root.AddCommand(newRender(s), newCRD(s), newInstall(s), newVet(s), newVersion(s), newRun(s), newWorker(s))
	return root
}

// noCommand refuses arguments of the bare command: they are misspelled commands.
func noCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	err := fmt.Errorf("unknown command %q", args[0])
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		err = fmt.Errorf("%w (did you mean %s?)", err, strings.Join(near, " or "))
	}
	return err
}

// usage makes the complaints of an argument check errors of usage.
func usage(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return usageError{err}
		}
		return nil
	}
}

// folders completes arguments with folders.
func folders(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveFilterDirs
}

// outputFlag adds -o with its allowed values, the first of which is the default.
func outputFlag(cmd *cobra.Command, into *string, values ...string) {
	cmd.Flags().VarP(&choice{value: into, values: values}, "output", "o", "format: "+strings.Join(values, " or "))
	*into = values[0]
	cmd.Flags().Lookup("output").DefValue = values[0]
	complete(cmd, "output", values)
}

// complete makes the shell complete a flag with some values.
func complete(cmd *cobra.Command, flag string, values []string) {
	err := cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
	if err != nil {
		panic(err) // the flag was added above
	}
}

// choice is a flag with a few allowed values, so that a wrong one is an error of
// usage like any other.
type choice struct {
	value  *string
	values []string
}

// String returns the value that is set.
func (c *choice) String() string {
	if c.value == nil {
		return ""
	}
	return *c.value
}

// Set sets an allowed value.
func (c *choice) Set(s string) error {
	if slices.Contains(c.values, s) {
		*c.value = s
		return nil
	}
	return fmt.Errorf("write one of %s", strings.Join(c.values, ", "))
}

// Type names the values in the help.
func (c *choice) Type() string { return strings.Join(c.values, "|") }

// annotationList is a flag of annotations of resources, by their names behind the prefix.
type annotationList struct {
	value   *[]string
	allowed []string
}

// String returns the names that are set.
func (l *annotationList) String() string {
	if l.value == nil {
		return ""
	}
	return strings.Join(unprefixed(*l.value), ",")
}

// Set adds names, with commas between them.
func (l *annotationList) Set(s string) error {
	for name := range strings.SplitSeq(s, ",") {
		i := slices.Index(unprefixed(l.allowed), name)
		if i < 0 {
			return fmt.Errorf("there is %s, and no %q", l.Type(), name)
		}
		*l.value = append(*l.value, l.allowed[i])
	}
	return nil
}

// Type names the values in the help.
func (l *annotationList) Type() string { return strings.Join(unprefixed(l.allowed), ",") }

// unprefixed returns annotations without their prefix.
func unprefixed(annotations []string) []string {
	var out []string
	for _, a := range annotations {
		_, name, _ := strings.Cut(a, "/")
		out = append(out, name)
	}
	return out
}
