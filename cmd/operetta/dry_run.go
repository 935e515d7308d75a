package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/dryrun"
	"operetta.dev/engine/dryrun/diff"
	"operetta.dev/engine/explain"
	"operetta.dev/engine/fault"
	"operetta.dev/engine/object"
	"operetta.dev/engine/program"
	"operetta.dev/engine/vet"
)

// dryRun are the flags of `operetta run --dry-run`.
type dryRun struct {
	mode   string
	remove bool
	files  []string
}

// Where a dry run takes place.
const (
	dryRunClient = "client"
	dryRunServer = "server"
)

const dryRunLong = `
With --dry-run there is no cluster. The custom resources of -f are rolled out in memory, where
Deployments, Jobs and the like become healthy as soon as they are written. Each step is
shown with what it writes and what the rest waits for. Other objects in the files exist from
the start, and so do their namespaces; any other namespace must be created first. Known kinds
are the built-in ones, those of the packages, and those whose CRD is in the files or rendered by
a package. Objects are refused if every API server would refuse them. Permissions, quotas and
webhooks are not checked. With --delete, the resources are deleted at the end.

With --dry-run=server, the API server is asked what the next reconcile would change; nothing is
written. It covers the custom resources of -f as if they were applied, or else those in the
cluster. Use it to see what a changed package would do.

Both print the changes of each object field by field. Values of Secrets are never shown, only
that they differ. With -o json, each step is a line of JSON on standard output, and nothing else
is: the resource with its status after the step, the objects that changed, and those that were
simulated to become ready.

Both exit with 1 if a component fails, the cluster refuses it, or it needs manual action. Without a
cluster, they also exit with 1 if a resource does not become ready or is not deleted. A dry run on
the server shows one reconcile, so waiting for what was just written is no failure.`

// addFlags adds the flags.
func (d *dryRun) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	optionalChoiceFlag(cmd, &d.mode, "dry-run", "show what would be done: in memory (client), or by dry runs on the API server (server)", dryRunClient, dryRunServer)
	f.StringArrayVarP(&d.files, "filename", "f", nil, "with --dry-run: file with custom resources; - is standard input")
	f.BoolVar(&d.remove, "delete", false, "with --dry-run: delete the custom resources at the end")
	completeManifests(cmd, "filename")
}

// check rejects flags that contradict each other.
func (d *dryRun) check() error {
	switch {
	case d.mode == dryRunClient && len(d.files) == 0:
		return usageError{fmt.Errorf("-f is missing: name the file with the custom resources")}
	case d.mode == "" && len(d.files) > 0:
		return usageError{fmt.Errorf("-f needs --dry-run; on a cluster, apply custom resources with kubectl")}
	case d.mode == "" && d.remove:
		return usageError{fmt.Errorf("--delete needs --dry-run; on a cluster, delete custom resources with kubectl")}
	}
	return nil
}

// A stepPrinter prints the steps of a dry run.
type stepPrinter struct {
	// out gets all that is text, and lines the steps as JSON, if it is not nil.
	out     io.Writer
	lines   *json.Encoder
	palette explain.Palette
	// mask hides what Secrets hold.
	mask *diff.Mask
	// inFull are the changes whose fields are shown.
	inFull []cluster.Operation
}

// clientDryRun is a dry run in memory.
type clientDryRun struct {
	stepPrinter

	world *dryrun.World
	// resources are the custom resources that were given, and given all objects that were.
	resources []cluster.Ref
	given     map[cluster.Ref]bool
}

// maxFields is how many fields of one object are shown.
const maxFields = 100

// runClientDryRun rolls the custom resources out in memory, and deletes them again with --delete.
func runClientDryRun(ctx context.Context, s streams, f runFlags, dirs []string) error {
	config, err := parseConfigKey(f.configMap)
	if err != nil {
		return err
	}
	programs, err := loadAll(ctx, dirs)
	if err != nil {
		return err
	}
	r := &clientDryRun{
		stepPrinter: newStepPrinter(s.out, f.output, &diff.Mask{}, cluster.Updated),
		world:       dryrun.New(config, programs...), given: map[cluster.Ref]bool{},
	}
	if err := r.read(ctx, s.in, f, dirs, programs); err != nil {
		return err
	}
	if err := r.world.Run(ctx, r.show); err != nil {
		return err
	}
	err = r.conclude(s.err)
	if !f.dryRun.remove {
		return err
	}
	return cmp.Or(r.remove(ctx, s.err), err)
}

// read puts the objects of the files where the operators see them: first the definitions of
// kinds, with those in the folders crds of the packages' modules, then what the packages read, then the custom resources.
func (r *clientDryRun) read(ctx context.Context, in io.Reader, f runFlags, dirs []string, programs []*program.Program) error {
	given, others, err := readGiven(ctx, in, f, programs)
	if err != nil {
		return err
	}
	beside, err := vet.ModuleDefinitions(dirs...)
	if err != nil {
		return err
	}
	for _, definition := range beside {
		if _, err := r.put(&unstructured.Unstructured{Object: definition}, f); err != nil {
			return err
		}
	}
	defines := func(u *unstructured.Unstructured) bool { _, _, ok := cluster.DefinedBy(u.Object); return ok }
	definitions := slices.DeleteFunc(slices.Clone(others), func(u *unstructured.Unstructured) bool { return !defines(u) })
	others = slices.DeleteFunc(others, defines)
	for _, u := range slices.Concat(definitions, others, given) {
		ref, err := r.put(u, f)
		if err != nil {
			return err
		}
		if slices.Contains(given, u) {
			r.resources = append(r.resources, ref)
		}
	}
	return nil
}

// readGiven returns the custom resources of the packages in the files, and the other objects. It errors
// if there are no custom resources.
func readGiven(ctx context.Context, in io.Reader, f runFlags, programs []*program.Program) (given, others []*unstructured.Unstructured, err error) {
	for _, file := range f.dryRun.files {
		all, err := readDocuments(ctx, file, in)
		if err != nil {
			return nil, nil, err
		}
		for _, d := range all {
			u := d.resource()
			if u.GetName() == "" {
				return nil, nil, fault.Faults{{Position: d.position(), Message: d.describe() + " has no name", Hint: "write metadata: name: and a name"}}
			}
			p := servedBy(programs, u.GroupVersionKind().GroupKind())
			if p == nil {
				others = append(others, u)
				continue
			}
			if err := prepareResource(d, renderOptions{file: file, namespace: f.options.Namespaces.Only()}, p); err != nil {
				return nil, nil, err
			}
			if err := checkServed(d, u, f.options.Namespaces); err != nil && !p.Meta().ClusterScoped {
				return nil, nil, err
			}
			given = append(given, u)
		}
	}
	if len(given) == 0 {
		return nil, nil, fmt.Errorf("%s: no custom resource of the packages in this file", strings.Join(f.dryRun.files, ", "))
	}
	return given, others, nil
}

// checkServed errors if a custom resource is in none of several namespaces: the operator would not see it.
func checkServed(d document, u *unstructured.Unstructured, namespaces object.Namespaces) error {
	if len(namespaces) < 2 || u.GetNamespace() != "" && namespaces.Has(u.GetNamespace()) {
		return nil
	}
	out := fault.Fault{Position: fault.Position{File: d.file, Line: d.lineOf("metadata", "namespace")}, Path: "metadata.namespace"}
	out.Message = fmt.Sprintf("the custom resource is in namespace %s, but --namespace says %s", u.GetNamespace(), namespaces)
	if u.GetNamespace() == "" {
		out.Message, out.Hint = fmt.Sprintf("the custom resource has no namespace, and --namespace says %s", namespaces), "write metadata: namespace: and one of them"
	}
	return fault.Faults{out}
}

// servedBy returns the package that serves a kind, or nil.
func servedBy(programs []*program.Program, kind schema.GroupKind) *program.Program {
	for _, p := range programs {
		if p.GroupVersionKind().GroupKind() == kind {
			return p
		}
	}
	return nil
}

// put puts one object, in a namespace if its kind has one and it names none.
func (r *clientDryRun) put(u *unstructured.Unstructured, f runFlags) (cluster.Ref, error) {
	if err := r.world.SetNamespace(u, f.defaultNamespace()); err != nil {
		return cluster.Ref{}, err
	}
	put, err := r.world.Put(u)
	if err != nil {
		return cluster.Ref{}, err
	}
	r.mask.Learn(put)
	ref := cluster.RefOf(put)
	r.given[ref.Identity()] = true
	return ref, nil
}

// show prints one step.
func (p stepPrinter) show(step dryrun.Step) {
	for _, c := range step.Changes {
		p.mask.Learn(c.Before, c.Object)
	}
	if p.lines != nil {
		_ = p.lines.Encode(p.record(step)) // a reader that went away is told nothing
		return
	}
	p.print(step)
}

// print prints one step as text.
func (p stepPrinter) print(step dryrun.Step) {
	phase, _ := step.Status["phase"].(string)
	printLinef(p.out, "step %d  %s  %s", step.Number, p.name(step.Resource), stateWord(p.palette, cmp.Or(phase, gone)))
	for _, c := range step.Changes {
		printLinef(p.out, "  %s %s", p.sign(c.Operation), p.name(c.Ref))
		p.fields(c)
	}
	components, _ := step.Status["components"].([]any)
	for _, c := range components {
		m, _ := c.(map[string]any)
		line := fmt.Sprintf("  %s: %v", p.mask.Text(fmt.Sprint(m["name"])), stateWord(p.palette, fmt.Sprint(m["state"])))
		if text, _ := m["message"].(string); text != "" {
			line += ", " + p.mask.Text(text)
		}
		printLinef(p.out, "%s", line)
	}
	if len(step.Simulated) > 0 {
		printLinef(p.out, "  %s", p.palette.Dim("simulated: "+p.mask.Text(names(step.Simulated))+" "+becomes(len(step.Simulated))+" ready"))
	}
	if step.Err != nil {
		printLinef(p.out, "  %s %s", p.palette.Bad("error:"), p.mask.Text(step.Err.Error()))
	}
}

// name returns a reference as it is printed.
func (p stepPrinter) name(ref cluster.Ref) string { return p.mask.Text(ref.String()) }

// shown returns the changed fields of an object, if those of its change are shown.
func (p stepPrinter) shown(c cluster.ObjectChange) []diff.Field {
	if !slices.Contains(p.inFull, c.Operation) {
		return nil
	}
	return p.mask.Fields(c.Before, c.Object)
}

// fields prints the changed fields of an object.
func (p stepPrinter) fields(c cluster.ObjectChange) {
	all := p.shown(c)
	for i, f := range all {
		if i == maxFields {
			printLinef(p.out, "      and %d more", len(all)-i)
			return
		}
		line := f.String()
		if c.Operation == cluster.Created {
			line = f.Path + ": " + f.After
		}
		printLinef(p.out, "      %s", line)
	}
}

// names returns a list of references.
func names(refs []cluster.Ref) string {
	out := make([]string, len(refs))
	for i, ref := range refs {
		out[i] = ref.String()
	}
	return strings.Join(out, ", ")
}

// sign returns the sign that is printed before a change.
func (p stepPrinter) sign(op cluster.Operation) string {
	switch op {
	case cluster.Created:
		return p.palette.Good("+")
	case cluster.Deleted:
		return p.palette.Bad("-")
	case cluster.Updated:
	}
	return p.palette.Warn("~")
}

// conclude prints the resources with their objects, and errors if a resource is not ready.
func (r *clientDryRun) conclude(errs io.Writer) error {
	fmt.Fprintln(r.out)
	var err error
	for _, ref := range r.resources {
		r.tree(ref, "", "")
		if ready, why := r.world.Ready(ref); !ready {
			printLinef(errs, "operetta: %s does not become ready: %s", r.name(ref), r.mask.Text(why))
			err = errReported
		}
	}
	return err
}

// tree prints a resource and its objects. An object that is a custom resource of the packages is
// printed as a tree itself.
func (r *clientDryRun) tree(ref cluster.Ref, first, rest string) {
	word := r.palette.Good("Ready")
	if ready, _ := r.world.Ready(ref); !ready {
		word = r.palette.Bad("not ready")
	}
	printLinef(r.out, "%s%s  %s", first, r.name(ref), word)
	components := r.world.Owned(ref)
	for i, c := range components {
		branch, trunk := "├─ ", "│  "
		if i == len(components)-1 {
			branch, trunk = "└─ ", "   "
		}
		printLinef(r.out, "%s%s%s", rest, branch, c.Name)
		for j, o := range c.Objects {
			leaf, stem := "├─ ", "│  "
			if j == len(c.Objects)-1 {
				leaf, stem = "└─ ", "   "
			}
			if r.world.Serves(o.GroupKind()) {
				r.tree(o, rest+trunk+leaf, rest+trunk+stem)
				continue
			}
			printLinef(r.out, "%s%s%s%s", rest, trunk, leaf, r.name(o))
		}
	}
}

// remove deletes the custom resources, and prints the objects that are left. It errors if a resource
// is not gone.
func (r *clientDryRun) remove(ctx context.Context, errs io.Writer) error {
	fmt.Fprintln(r.out)
	for _, ref := range r.resources {
		printLinef(r.out, "delete  %s", r.name(ref))
		if err := r.world.Delete(ref); err != nil {
			return err
		}
	}
	if err := r.world.Run(ctx, r.show); err != nil {
		return err
	}
	fmt.Fprintln(r.out)
	for _, ref := range r.world.Cluster.Refs() {
		if !r.given[ref] {
			printLinef(r.out, "left  %s", r.name(ref))
		}
	}
	for _, ref := range r.resources {
		if u := r.world.Get(ref); u != nil {
			message, _, _ := unstructured.NestedString(u.Object, "status", "phase")
			_, why := r.world.Ready(ref)
			printLinef(errs, "operetta: %s is not gone: %s: %s", r.name(ref), message, r.mask.Text(why))
			return errReported
		}
	}
	return nil
}

// parseConfigKey returns the namespace and the name in a value of --config-map, which may be empty.
func parseConfigKey(text string) (types.NamespacedName, error) {
	if text == "" {
		return types.NamespacedName{}, nil
	}
	namespace, name, ok := strings.Cut(text, "/")
	if !ok {
		return types.NamespacedName{}, usageError{fmt.Errorf("--config-map %s: write namespace/name", text)}
	}
	return types.NamespacedName{Namespace: namespace, Name: name}, nil
}

// becomes returns the verb for so many objects.
func becomes(n int) string {
	if n == 1 {
		return "becomes"
	}
	return "become"
}
