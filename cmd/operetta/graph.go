package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"operetta.dev/engine/explain"
	"operetta.dev/engine/graph/picture"
	"operetta.dev/engine/program"
	"operetta.dev/engine/render"
)

// The formats of graphs, besides text.
const (
	formatMermaid = "mermaid"
	formatDOT     = "dot"
	formatSVG     = "svg"
	formatPNG     = "png"
)

const graphLong = `Draw the components of a package and their dependencies: those that are declared, those that
follow from a reference, and those that only set the order.

With -f, the picture includes the objects for a custom resource. With KIND/NAME, it shows a custom
resource of the cluster, with the state of each component and object as a colour and a sign. It is
read with your permissions and needs no package; with a package, the picture also shows the kind
of each dependency.

SVG and PNG need no other program. Mermaid and DOT are input for other tools, and JSON for scripts.

Without KIND/NAME, the default is the package in the current folder.`

const graphExample = `  operetta graph ./cue/webapp

  # For a review
  operetta graph ./cue/webapp -f config/samples/webapp.yaml -o svg --output-file webapp.svg

  # What is live
  operetta graph ./cue/webapp webapp/nginx-app -o png --output-file nginx-app.png`

// graphFlags are the settings of `operetta graph`.
type graphFlags struct {
	renderOptions

	cluster    clusterFlags
	outputFile string
}

func newGraph(s streams) *cobra.Command {
	var f graphFlags
	cmd := &cobra.Command{
		Use:     "graph [package] [-f FILE | KIND/NAME]",
		Short:   "Draw the components of a package and their dependencies",
		Long:    graphLong,
		Example: graphExample,
		Args:    usageArgs(cobra.MaximumNArgs(2)),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
			return explainFlags{cluster: f.cluster, namespace: f.namespace}.completeBehindPackage(cmd.Context(), args, typed)
		},
		RunE: func(cmd *cobra.Command, args []string) error { return runGraph(cmd.Context(), s, f, args) },
	}
	addOverlayFlag(cmd)
	f.addFlags(cmd, "namespace of the custom resource; by default that of the context, or of the file")
	cmd.Flags().StringVar(&f.outputFile, "output-file", "", "write the picture to this file")
	f.cluster.addFlags(cmd)
	f.cluster.completeNamespaces(cmd)
	outputFlag(cmd, &f.output, formatText, formatJSON, formatMermaid, formatDOT, formatSVG, formatPNG)
	return cmd
}

// resourceName matches KIND/NAME.
var resourceName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9.-]*/[a-z0-9][a-z0-9.-]*$`)

// split returns the packages and the custom resource among the arguments. A folder of that name is a package.
func (f graphFlags) split(args []string) (packages []string, resource string, err error) {
	if last := len(args) - 1; last >= 0 && resourceName.MatchString(args[last]) {
		if _, err := os.Stat(args[last]); err != nil || last > 0 {
			packages, resource = args[:last], args[last]
		}
	}
	if resource == "" {
		packages = args
	}
	switch {
	case len(packages) > 1:
		err = usageError{fmt.Errorf("%s is not KIND/NAME, such as webapp/nginx-app", packages[1])}
	case resource != "" && f.file != "":
		err = usageError{fmt.Errorf("-f and %s exclude each other: one is from a file, the other from the cluster", resource)}
	case f.file == "" && f.live != "":
		err = usageError{fmt.Errorf("--live needs a custom resource: name its file with -f")}
	case f.file == stdin && f.live == stdin:
		err = usageError{fmt.Errorf("-f and --live cannot both read standard input")}
	}
	return packages, resource, err
}

func runGraph(ctx context.Context, s streams, f graphFlags, args []string) error {
	packages, resource, err := f.split(args)
	if err != nil {
		return err
	}
	if _, is := terminal(s.out); is && f.output == formatPNG && f.outputFile == "" {
		return usageError{fmt.Errorf("a PNG cannot be shown on a terminal: add --output-file")}
	}
	var drawn drawable
	if resource != "" {
		drawn, err = f.fromCluster(ctx, packages, resource, s)
	} else {
		drawn, err = f.rendered(ctx, packages, s)
	}
	if err != nil {
		return err
	}
	if err := f.write(s, drawn); err != nil {
		return err
	}
	return drawn.faults
}

// A drawable is what can be drawn as a text or as a picture.
type drawable struct {
	text    func() (string, error)
	picture picture.Picture
	// faults are those of the package.
	faults error
}

// rendered returns what a package shows, for a custom resource if one is given.
func (f graphFlags) rendered(ctx context.Context, packages []string, s streams) (drawable, error) {
	p, err := loadOne(ctx, packages)
	if err != nil {
		return drawable{}, err
	}
	if f.file == "" {
		noteComputed(s, p)
		out := render.Static(p)
		return drawable{out.Tree, out.Picture(p.GroupVersionKind().Kind + ", package " + p.Name()), out.Faults.OrNil()}, nil
	}
	cr, in, err := readResource(ctx, s.in, f.renderOptions, packages, p)
	if err != nil {
		return drawable{}, err
	}
	out, err := render.Render(ctx, p, in)
	switch {
	case err != nil:
		return drawable{}, err
	case len(out.Invalid) > 0:
		return drawable{}, cr.locate(out.Invalid)
	}
	return drawable{out.Tree, out.Picture(p.GroupVersionKind().Kind + "/" + cr.name()), out.Faults.OrNil()}, nil
}

// noteComputed says where a package has components that only a custom resource shows.
func noteComputed(s streams, p *program.Program) {
	var told []string
	for _, c := range p.Syntax().Conditionals() {
		if at := c.Position().String(); c.Component == "" && !slices.Contains(told, at) {
			told = append(told, at)
			printLinef(s.err, "note: %s: a custom resource decides about more components; -f with one shows them", at)
		}
	}
}

// fromCluster returns a custom resource of the cluster as it is.
func (f graphFlags) fromCluster(ctx context.Context, packages []string, resource string, s streams) (drawable, error) {
	var kind func(component, needs string) picture.Kind
	if len(packages) > 0 {
		p, err := loadOne(ctx, packages)
		if err != nil {
			return drawable{}, err
		}
		kind = kindsOf(p)
	}
	read, err := explainFlags{cluster: f.cluster, namespace: f.namespace}.reader([]string{resource})
	if err != nil {
		return drawable{}, err
	}
	r, err := read(ctx)
	if err != nil {
		return drawable{}, err
	}
	r.OperatorMissing = "" // a picture has no reconciles
	palette := newPalette(s.out)
	if f.outputFile != "" {
		palette = explain.Plain
	}
	return drawable{text: func() (string, error) { return r.Tree(palette, time.Now()), nil }, picture: r.Picture(kind)}, nil
}

// kindsOf returns why components of a package need others, as far as its text shows.
func kindsOf(p *program.Program) func(component, needs string) picture.Kind {
	edges := map[[2]string]picture.Kind{}
	for _, c := range p.Template() {
		for _, e := range c.Edges {
			edges[[2]string{c.Name, e.To}] = render.EdgeKind(e)
		}
	}
	return func(component, needs string) picture.Kind { return edges[[2]string{component, needs}] }
}

// write writes a drawing in the format of the flags.
func (f graphFlags) write(s streams, d drawable) error {
	var out []byte
	var err error
	switch f.output {
	case formatJSON:
		var text bytes.Buffer
		err = printJSON(&text, d.picture.Data())
		out = text.Bytes()
	case formatMermaid:
		out = []byte(d.picture.Mermaid())
	case formatDOT:
		out = []byte(d.picture.DOT())
	case formatSVG:
		out = d.picture.SVG()
	case formatPNG:
		out, err = d.picture.PNG()
	default:
		var text string
		text, err = d.text()
		out = []byte(text + d.picture.EdgeList())
		if err != nil && d.faults != nil {
			return d.faults
		}
	}
	if err != nil {
		return err
	}
	if f.outputFile != "" {
		return os.WriteFile(f.outputFile, out, 0o644)
	}
	w := s.out
	if f.output == formatPNG {
		w = unwrapWriter(w) // it is no text that could be escaped
	}
	_, err = w.Write(out)
	return err
}
