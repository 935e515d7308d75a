package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"operetta.dev/engine/explain"
	"operetta.dev/engine/fault"
	"operetta.dev/engine/program"
	"operetta.dev/engine/render"
	"operetta.dev/engine/why"
)

const whyLong = `Show where the value of a field of an object comes from: the lines of the package that write it
and those that they refer to; the fields of the custom resource, with the line of the schema and
whether they were given or are the default; live objects, inputs and configuration; and who owns
the field in the cluster now, since when, and whether it differs.

OBJECT is KIND/NAME, a component with one object, or COMPONENT.OBJECT by the names in the package.
PATH is that of the field, such as .spec.replicas, .spec.containers[0].image or
.metadata.labels["app.kubernetes.io/name"].

With KIND/NAME, the custom resource, its objects and its inputs are read from the cluster with
your permissions. With -f, they are read from files and no cluster is needed, as operetta render
does. Nothing is written. The content of Secrets is masked.

The default is the package in the current folder.`

const whyExample = `  operetta why ./cue/webapp webapp/nginx-app deployment/nginx-app .spec.replicas

  # Without a cluster
  operetta why ./cue/webapp -f config/samples/webapp.yaml deployment/nginx-app '.spec.template.spec.containers[0].image'`

// whyFlags are the settings of `operetta why`.
type whyFlags struct {
	renderOptions

	cluster clusterFlags
}

func newWhy(s streams) *cobra.Command {
	var f whyFlags
	cmd := &cobra.Command{
		Use:     "why [package] {KIND/NAME | -f FILE} OBJECT PATH",
		Short:   "Show where the value of a field of an object comes from",
		Long:    whyLong,
		Example: whyExample,
		Args:    usageArgs(cobra.RangeArgs(2, 4)),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
			e := explainFlags{cluster: f.cluster, namespace: f.namespace}
			if last := len(args) - 1; last >= 0 && resourceName.MatchString(args[last]) {
				return e.completeObject(cmd.Context(), args[last], typed), cobra.ShellCompDirectiveNoFileComp
			}
			return e.completeBehindPackage(cmd.Context(), args, typed)
		},
		RunE: func(cmd *cobra.Command, args []string) error { return runWhy(cmd.Context(), s, f, args) },
	}
	addOverlayFlag(cmd)
	f.addFlags(cmd, "namespace of the custom resource; by default that of the context, or of the file")
	f.cluster.addFlags(cmd)
	f.cluster.completeNamespaces(cmd)
	outputFlag(cmd, &f.output, formatText, formatJSON)
	return cmd
}

// split returns the package, the custom resource, the object and the path among the arguments.
func (f whyFlags) split(args []string) (packages []string, resource, object, path string, err error) {
	rest, last := args[:len(args)-2], args[len(args)-2:]
	object, path = last[0], last[1]
	if f.file == "" {
		if len(rest) == 0 {
			return nil, "", "", "", usageError{fmt.Errorf("name the custom resource: KIND/NAME of the cluster, or -f FILE")}
		}
		resource, rest = rest[len(rest)-1], rest[:len(rest)-1]
	}
	switch {
	case len(rest) > 1:
		err = usageError{fmt.Errorf("-f has the custom resource: leave out %s", rest[1])}
	case f.file == "" && f.live != "":
		err = usageError{fmt.Errorf("--live needs a custom resource: name its file with -f")}
	case f.file == stdin && f.live == stdin:
		err = usageError{fmt.Errorf("-f and --live cannot both read standard input")}
	case !strings.HasPrefix(path, ".") && !strings.HasPrefix(path, "["):
		err = usageError{fmt.Errorf("%q is not the path of a field, such as .spec.replicas", path)}
	}
	return rest, resource, object, path, err
}

func runWhy(ctx context.Context, s streams, f whyFlags, args []string) error {
	packages, resource, object, path, err := f.split(args)
	if err != nil {
		return err
	}
	p, err := loadOne(ctx, packages)
	if err != nil {
		return err
	}
	in, notes, locate, err := f.input(ctx, s, packages, p, resource)
	if err != nil {
		return err
	}
	answer, err := why.Ask(ctx, p, in, why.Question{Object: object, Path: path})
	if invalid, ok := errors.AsType[*why.InvalidError](err); ok {
		return locate(invalid.Faults)
	}
	if err != nil {
		return err
	}
	answer.Notes = append(answer.Notes, notes...)
	return s.printAs(f.output, answer, func(palette explain.Palette) string { return answer.Text(palette, time.Now()) })
}

// input returns what is rendered: from files, or from the cluster. locate gives faults of the resource their place in its
// file; a resource of the cluster has none.
func (f whyFlags) input(ctx context.Context, s streams, packages []string, p *program.Program, resource string) (in render.Input, notes []string, locate func(fault.Faults) fault.Faults, err error) {
	if f.file == "" {
		in, notes, err = f.fromCluster(ctx, p, resource)
		return in, notes, func(faults fault.Faults) fault.Faults { return faults }, err
	}
	cr, in, err := readResource(ctx, s.in, f.renderOptions, packages, p)
	return in, nil, cr.locate, err
}

// fromCluster reads the custom resource, its objects and its inputs.
func (f whyFlags) fromCluster(ctx context.Context, p *program.Program, resource string) (render.Input, []string, error) {
	var none render.Input
	word, name, err := kindAndName(resource)
	if err != nil {
		return none, nil, err
	}
	on, live, err := f.cluster.connect()
	if err != nil {
		return none, nil, err
	}
	kind, err := on.kindNamed(word)
	if err != nil {
		return none, nil, err
	}
	if want := p.GroupVersionKind(); kind.GroupKind() != want.GroupKind() {
		return none, nil, fmt.Errorf("%s is %s, but package %s is for %s", resource, kind.GroupKind(), p.Name(), want.GroupKind())
	}
	ref, err := namespaced(live, p.GroupVersionKind(), name, f.namespace, on.namespace)
	if err != nil {
		return none, nil, err
	}
	cr, err := live.GetLive(ctx, ref)
	if err != nil {
		return none, nil, err
	}
	if cr == nil {
		return none, nil, notFound(ref, word)
	}
	in, notes, err := why.Gather(ctx, live, p, cr)
	return in, slices.Clip(notes), err
}
