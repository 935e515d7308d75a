package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"operetta.dev/engine/fault"
	"operetta.dev/engine/render"
	"operetta.dev/engine/status"
)

// The drawings of the graph.
const (
	graphTree    = "tree"
	graphMermaid = "mermaid"
)

// renderOptions are the flags of render.
type renderOptions struct {
	file, name, namespace string
	live                  string
	output, graph         string
	// only are the names of components and objects, outputDir is the folder for files.
	only      []string
	outputDir string
}

const renderLong = `Print the objects that a package renders for a custom resource, without a cluster.

The objects are printed in the order in which they would be applied: dependencies first. The
state of each component goes to stderr, in the words of the resource's status: what would be
applied now, what waits for what, what is excluded or wrong, and the line of the package that
says so. It is what the next reconcile would decide before its first write. A field that the
kind of an object does not have is a fault even while the object waits.

Some objects depend on live objects. --live reads those, and the inputs of the package, from
a file. The file has manifests as kubectl prints them, matched by kind, namespace and name,
or a map by component and object name:

  web:
    deployment: {apiVersion: apps/v1, kind: Deployment, status: {availableReplicas: 3}}

Manifests that kubectl printed keep their owner: the object of another owner is refused, as in
a cluster. A manifest without a resourceVersion was written by hand. It stands for the object
as the operator has applied it, with the given fields over that.

Built-in kinds are known. For any other kind, give its CRD with -f or --live: it says whether
the kind is namespaced.

The default is the package in the current folder.`

const renderExample = `  operetta render ./cue/webapp -f config/samples/webapp.yaml

  # Use the live objects of the cluster
  kubectl get webapp nginx-app -o yaml > cr.yaml
  kubectl get all,configmap,secret -o yaml > live.yaml
  operetta render ./cue/webapp -f cr.yaml --live live.yaml

  # One component, one object; and all objects, each in a file
  operetta render ./cue/webapp -f config/samples/webapp.yaml --only config --only web.service
  operetta render ./cue/webapp -f config/samples/webapp.yaml --output-dir manifests

  # Draw the dependencies, as a tree or for a document
  operetta render ./cue/webapp --graph
  operetta render ./cue/webapp --graph=mermaid`

func newRender(s streams) *cobra.Command {
	var o renderOptions
	cmd := &cobra.Command{
		Use:               "render [package] -f FILE",
		Short:             "Print the objects that a package renders for a custom resource",
		Long:              renderLong,
		Example:           renderExample,
		Args:              usageArgs(cobra.MaximumNArgs(1)),
		ValidArgsFunction: completeFolders,
		PreRunE:           func(cmd *cobra.Command, _ []string) error { return o.check(cmd) },
		RunE:              func(cmd *cobra.Command, args []string) error { return runRender(cmd.Context(), s, o, args) },
	}
	addOverlayFlag(cmd)
	f := cmd.Flags()
	o.addFlags(cmd, `namespace of the custom resource, if it has none (default "`+render.DefaultNamespace+`")`)
	f.StringArrayVar(&o.only, "only", nil, "component or object to print, such as web, web.service or service/nginx-app (repeatable)")
	f.StringVar(&o.outputDir, "output-dir", "", "new or empty folder to write each object to, in a file of its own")
	must(cmd.MarkFlagDirname("output-dir"))
	optionalChoiceFlag(cmd, &o.graph, "graph", "draw the components and their dependencies instead of printing objects", graphTree, graphMermaid)
	outputFlag(cmd, &o.output, formatYAML, formatJSON)
	return cmd
}

// addFlags adds the flags that name the custom resource and its live objects.
func (o *renderOptions) addFlags(cmd *cobra.Command, namespaceUsage string) {
	f := cmd.Flags()
	f.StringVarP(&o.file, "filename", "f", "", "file with the custom resource; - is standard input")
	f.StringVar(&o.live, "live", "", "file with live objects; - is standard input")
	f.StringVar(&o.name, "name", "", "name of the custom resource, if the file has several")
	f.StringVarP(&o.namespace, "namespace", "n", "", namespaceUsage)
	completeManifests(cmd, "filename", "live")
}

// check rejects flags that contradict each other.
func (o renderOptions) check(cmd *cobra.Command) error {
	switch {
	case o.file == "" && o.graph == "":
		return usageError{fmt.Errorf("-f is missing: name the file with the custom resource")}
	case o.file == "" && o.live != "":
		return usageError{fmt.Errorf("--live needs a custom resource: name its file with -f")}
	case o.file == stdin && o.live == stdin:
		return usageError{fmt.Errorf("-f and --live cannot both read standard input")}
	case o.graph != "" && cmd.Flags().Changed("output"):
		return usageError{fmt.Errorf("--graph and -o exclude each other: --graph draws, -o formats objects")}
	case o.graph != "" && (len(o.only) > 0 || o.outputDir != ""):
		return usageError{fmt.Errorf("--graph draws all components: it has no objects to choose or to write to files")}
	}
	return nil
}

func runRender(ctx context.Context, s streams, o renderOptions, args []string) error {
	p, err := loadOne(ctx, args)
	if err != nil {
		return err
	}
	if o.file == "" {
		out := render.Static(p)
		if err := printGraph(s.out, o.graph, out); err != nil {
			return err
		}
		return out.Faults.OrNil()
	}
	cr, in, err := readResource(ctx, s.in, o, args, p)
	if err != nil {
		return err
	}
	out, err := render.Render(ctx, p, in)
	if err != nil {
		return err
	}
	if len(out.Invalid) > 0 {
		return cr.locate(out.Invalid)
	}
	return printRendered(s, o, out)
}

// printRendered prints the objects or the graph, and then the state of each component. It errors with
// the faults of the package, after it has printed what could be rendered.
func printRendered(s streams, o renderOptions, out render.Output) error {
	err := printChosen(s, o, out)
	printStates(s.err, out)
	if err != nil {
		return err
	}
	return slices.Concat(out.Faults, out.Refused).OrNil()
}

// printChosen prints the graph, or writes or prints the objects that are asked for.
func printChosen(s streams, o renderOptions, out render.Output) error {
	if o.graph != "" {
		return printGraph(s.out, o.graph, out)
	}
	objects, err := selected(out, o.only)
	if err != nil {
		return err
	}
	manifests := make([]manifest, len(objects))
	for i, object := range objects {
		manifests[i] = manifest{comment: object.Path(), object: object.Manifest}
	}
	if o.outputDir == "" {
		return printManifests(s.out, o.output, manifests)
	}
	if err := writeManifests(o.outputDir, o.output, manifests); err != nil {
		return err
	}
	printLinef(s.err, "%s: %s", o.outputDir, count(len(manifests), "file"))
	return nil
}

// printGraph draws the components. Those with cycles have no tree; Mermaid shows them.
func printGraph(w io.Writer, kind string, out render.Output) error {
	drawing := out.Mermaid()
	if kind == graphTree {
		var err error
		if drawing, err = out.Tree(); err != nil {
			return out.Faults
		}
	}
	_, err := io.WriteString(w, drawing)
	return err
}

// printStates prints the state of each component in the words of the status, in the order of the objects.
func printStates(w io.Writer, out render.Output) {
	palette := newPalette(w)
	shown := map[string]bool{}
	for _, c := range out.Components {
		if c.State == "" {
			continue // there is no preview; the faults say why
		}
		shown[c.Name] = true
		line := c.Name + ": " + stateWord(palette, string(c.State))
		faulty := c.State == status.Failed && c.Reason != status.ReasonObjectFailed || c.State == status.Waiting && c.Reason == status.ReasonKindNotServed
		if c.Message != "" && !faulty { // faults are printed with all others, at the end
			line += ", " + c.Message
		}
		printLinef(w, "%s", line)
	}
	for _, u := range out.Unmet {
		printLinef(w, "%s", u)
	}
	for _, h := range out.Hooks {
		if !shown[h.Component.Name] {
			printLinef(w, "%s: %s, not rendered: a hook runs at its phase", h.Component.Name, palette.Dim(count(len(h.Component.Objects), "object")))
		}
	}
	for _, a := range out.Absent {
		printLinef(w, "note: %s", a)
	}
	for _, u := range out.Unmatched {
		printLinef(w, "note: live object %s matches no rendered object", u)
	}
}

// locate gives faults of the custom resource their place in its file, and the place in
// the package that forbids them as a hint.
func (d document) locate(faults fault.Faults) fault.Faults {
	out := make(fault.Faults, len(faults))
	for i, f := range faults {
		if rule := f.Position.String(); rule != "" {
			f.Hint = strings.TrimPrefix(f.Hint+"; the rule is "+rule, "; ")
		}
		f.Position = fault.Position{File: d.file, Line: d.lineOf(fault.SplitPath(f.Path)...)}
		out[i] = f
	}
	return out
}
