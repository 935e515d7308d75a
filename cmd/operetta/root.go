package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"operetta.dev/engine/object"
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

// exitCodes is the end of the help of every command, because scripts depend on the codes.
const exitCodes = `
Exit codes:
  0  success
  1  the package, the custom resource, the cluster or the command line has a fault, or is not ready
  2  operetta plan, operetta replay, operetta rbac --diff or operetta run --until-same has found a difference`

// newRoot returns the command with all its subcommands.
func newRoot(s streams) *cobra.Command {
	root := &cobra.Command{
		Use:           "operetta",
		Short:         "Run Kubernetes operators that are written in CUE",
		Long:          rootLong,
		Example:       rootExample,
		SilenceErrors: true, // reportError prints them
		SilenceUsage:  true, // a page of help would push the error off the screen

		SuggestionsMinimumDistance: 2,
		DisableFlagsInUseLine:      true,
		Args:                       knownCommand,
		RunE:                       func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetIn(s.in)
	root.SetOut(s.out)
	root.SetErr(s.err)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{wrongFlag(err)} })
	root.SetUsageTemplate(root.UsageTemplate() + exitCodes + "\n")
	root.AddCommand(newRender(s), newCRD(s), newInstall(s), newRBAC(s), newVet(s), newTest(s), newInit(s), newImport(s), newNew(s), newExplain(s), newStatus(s), newPlan(s), newDump(s), newReplay(s), newPush(s), newGraph(s), newWhy(s), newUI(s), newVersion(s), newRun(s), newWorker(s))
	checkArguments(root)
	if name := strings.TrimSuffix(filepath.Base(s.program), ".exe"); name == pluginName {
		asPlugin(root)
	}
	return root
}

// pluginName is the name of the binary as a plugin of kubectl.
const pluginName = "kubectl-operetta"

// commandLine matches the binary at the beginning of a command line in a help text.
var commandLine = regexp.MustCompile(`(?m)^(\s*|.*\| )operetta `)

// asPlugin makes the help show what a user of kubectl types.
func asPlugin(root *cobra.Command) {
	root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl operetta"}
	for _, cmd := range allCommands(root) {
		cmd.Example = commandLine.ReplaceAllString(cmd.Example, "${1}kubectl operetta ")
	}
}

// allCommands returns a command and all below it.
func allCommands(of *cobra.Command) []*cobra.Command {
	out := []*cobra.Command{of}
	for _, cmd := range of.Commands() {
		out = append(out, allCommands(cmd)...)
	}
	return out
}

// checkArguments makes the commands that cobra adds reject arguments, which it would answer with a page of help and
// exit code 0.
func checkArguments(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		switch cmd.Name() {
		case "help":
			cmd.Args = func(_ *cobra.Command, args []string) error {
				found, rest, err := root.Find(args)
				if err != nil {
					return usageError{err}
				}
				return knownCommand(found, rest)
			}
		case "completion":
			cmd.Args, cmd.RunE = knownCommand, func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
			for _, shell := range cmd.Commands() {
				shell.Args = usageArgs(cobra.ExactArgs(0))
			}
		}
	}
}

// knownCommand rejects arguments of a command that has only commands below it: they are misspelled commands.
func knownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	err := fmt.Errorf("unknown command %q", args[0])
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		err = fmt.Errorf("%w (did you mean %s?)", err, strings.Join(near, " or "))
	}
	return usageError{err}
}

// usageArgs returns an argument check whose errors are usage errors, with the arguments that the command takes.
func usageArgs(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return usageError{fmt.Errorf("%w: %s", err, cmd.UseLine())}
		}
		return nil
	}
}

// wrongFlag says what to write where the value of a flag cannot be read, in place of what package strconv says.
func wrongFlag(err error) error {
	invalid, is := errors.AsType[*pflag.InvalidValueError](err)
	if !is {
		return err
	}
	var want string
	switch kind := invalid.GetFlag().Value.Type(); {
	case kind == "bool":
		want = "true or false"
	case kind == "duration":
		want = "a duration, such as 90s or 10m"
	case kind == "uint16":
		want = "a number from 0 to 65535"
	case strings.Contains(kind, "int"):
		want = "a whole number"
	default:
		return err
	}
	return fmt.Errorf("invalid argument %q for --%s: write %s", invalid.GetValue(), invalid.GetFlag().Name, want)
}

// completeFolders makes the shell complete arguments with folders.
func completeFolders(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveFilterDirs
}

// outputFlag adds -o with its allowed values, the first of which is the default.
func outputFlag(cmd *cobra.Command, into *string, values ...string) {
	*into = values[0]
	cmd.Flags().VarP(&choice{value: into, values: values}, "output", "o", "format: "+strings.Join(values, " or "))
	completeFlag(cmd, "output", values)
}

// choiceFlag adds a flag with its allowed values, the first of which is the default.
func choiceFlag(cmd *cobra.Command, into *string, name, help string, values ...string) {
	*into = values[0]
	cmd.Flags().Var(&choice{value: into, values: values}, name, help)
	completeFlag(cmd, name, values)
}

// optionalChoiceFlag adds a flag that is off by default, and is the first of its values if it is
// given without one.
func optionalChoiceFlag(cmd *cobra.Command, into *string, name, help string, values ...string) {
	cmd.Flags().Var(&choice{value: into, values: values}, name, help)
	cmd.Flags().Lookup(name).NoOptDefVal = values[0]
	completeFlag(cmd, name, values)
}

// completeFlag makes the shell complete a flag with some values.
func completeFlag(cmd *cobra.Command, flag string, values []string) {
	must(cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)))
}

// completeManifests makes the shell complete flags with the names of YAML and JSON files.
func completeManifests(cmd *cobra.Command, flags ...string) {
	for _, f := range flags {
		must(cmd.MarkFlagFilename(f, "yaml", "yml", "json"))
	}
}

// must panics on an error of cobra about a flag, which would be a bug of this package.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

// choice is a flag with a few allowed values. Another value is a usage error.
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

// namespacesFlag adds the flag with the namespaces that an operator serves. Whoever gives it names at least one, so that an
// empty variable in a script does not stand for all of them.
func namespacesFlag(cmd *cobra.Command, value *object.Namespaces, usage string) {
	var given []string // in this order
	cmd.Flags().FuncP("namespace", "n", usage, func(text string) (err error) {
		given = append(given, strings.Split(text, ",")...)
		*value, err = object.ParseNamespaces(given)
		return err
	})
}

// annotationList is a flag with a list of annotations, which are given without their prefix.
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

// Set adds names that are separated by commas.
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
