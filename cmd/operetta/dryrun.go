package main

import (
	"context"
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
	"operetta.dev/engine/fault"
	"operetta.dev/engine/program"
	"operetta.dev/engine/render"
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
that they differ. Both exit with 1 if a component fails, the cluster refuses it, or it needs
manual action. Without a cluster, they also exit with 1 if a resource does not become ready or
is not deleted. A dry run on the server shows one reconcile, so waiting for what was just
written is no failure.`

// addFlags adds the flags.
func (d *dryRun) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.Var(&choice{value: &d.mode, values: []string{dryRunClient, dryRunServer}}, "dry-run", "show what would be done: in memory (client), or by dry runs on the API server (server)")
	f.Lookup("dry-run").NoOptDefVal = dryRunClient
	completeFlag(cmd, "dry-run", []string{dryRunClient, dryRunServer})
	f.StringArrayVarP(&d.files, "filename", "f", nil, "with --dry-run: file with custom resources; - is standard input")
	f.BoolVar(&d.remove, "delete", false, "with --dry-run: delete the custom resources at the end")
	if err := cmd.MarkFlagFilename("filename", "yaml", "yml", "json"); err != nil {
		panic(err) // the flag was added above
	}
}

// check refuses flags that contradict each other.
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

// rehearsal is one dry run.
type rehearsal struct {
	out   io.Writer
	ink   ink
	world *dryrun.World
	// resources are those that were given.
	resources []cluster.Ref
	// given is everything that was.
	given map[cluster.Ref]bool
	// mask hides what Secrets hold.
	mask *diff.Mask
	// inFull are the changes whose fields are shown.
	inFull []cluster.Verb
}

// maxFields is how many fields of one object are shown.
const maxFields = 100

// rehearse rolls the custom resources out in memory, and deletes them again if that
// is asked for.
func rehearse(ctx context.Context, s streams, f runFlags, dirs []string) error {
	config, err := f.configKey()
	if err != nil {
		return err
	}
	programs, err := loadAll(ctx, dirs)
	if err != nil {
		return err
	}
	r := &rehearsal{
		out: s.out, ink: newInk(s.out), given: map[cluster.Ref]bool{}, world: dryrun.New(config, programs...),
		mask: &diff.Mask{}, inFull: []cluster.Verb{cluster.Updated},
	}
	if err := r.read(ctx, s.in, f, programs); err != nil {
		return err
	}
	if err := r.world.Run(ctx, r.show); err != nil {
		return err
	}
	err = r.conclude(s.err)
	if !f.dryRun.remove {
		return err
	}
	if wrong := r.remove(ctx, s.err); wrong != nil {
		return wrong
	}
	return err
}

// loadAll checks and loads packages.
func loadAll(ctx context.Context, dirs []string) ([]*program.Program, error) {
	var out []*program.Program
	for _, dir := range dirs {
		p, err := loadOne(ctx, []string{dir})
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}

// read puts the objects of the files where the operators see them: first what the
// packages read, then the custom resources.
func (r *rehearsal) read(ctx context.Context, in io.Reader, f runFlags, programs []*program.Program) error {
	given, others, err := readGiven(ctx, in, f, programs)
	if err != nil {
		return err
	}
	slices.SortStableFunc(others, func(a, b *unstructured.Unstructured) int { return definesNothing(a) - definesNothing(b) })
	for _, u := range append(others, given...) {
		ref, err := r.put(u, f.options.CustomResourceNamespace)
		if err != nil {
			return err
		}
		if slices.Contains(given, u) {
			r.resources = append(r.resources, ref)
		}
	}
	return nil
}

// definesNothing is 0 for the definition of a kind, which comes before objects of that kind,
// and 1 for anything else.
func definesNothing(u *unstructured.Unstructured) int {
	if _, _, defines := cluster.DefinedBy(u.Object); defines {
		return 0
	}
	return 1
}

// readGiven returns the custom resources in the files, and what else is there.
func readGiven(ctx context.Context, in io.Reader, f runFlags, programs []*program.Program) (given, others []*unstructured.Unstructured, err error) {
	for _, file := range f.dryRun.files {
		all, err := readDocuments(ctx, file, in)
		if err != nil {
			return nil, nil, err
		}
		for _, d := range all {
			u := &unstructured.Unstructured{Object: d.object}
			if u.GetName() == "" {
				return nil, nil, fault.Faults{{Position: d.position(), Message: d.describe() + " has no name", Hint: "write metadata: name: and a name"}}
			}
			p := servedBy(programs, u.GroupVersionKind().GroupKind())
			if p == nil {
				others = append(others, u)
				continue
			}
			if err := checkResource(d, renderOptions{file: file, namespace: f.options.CustomResourceNamespace}, p); err != nil {
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
func (r *rehearsal) put(u *unstructured.Unstructured, namespace string) (cluster.Ref, error) {
	scope, err := r.world.Scope(u.GroupVersionKind())
	switch {
	case err != nil: // perhaps it says so itself
	case scope == cluster.ClusterScoped:
		u.SetNamespace("")
	case u.GetNamespace() == "" && namespace != "":
		u.SetNamespace(namespace)
	case u.GetNamespace() == "":
		u.SetNamespace(render.DefaultNamespace)
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

// signs stand before what was written.
var signs = map[cluster.Verb]string{cluster.Created: "+", cluster.Updated: "~", cluster.Deleted: "-"}

// show prints one step.
func (r *rehearsal) show(step dryrun.Step) {
	for _, c := range step.Changes {
		r.mask.Learn(c.Before, c.Object)
	}
	phase, _ := step.Status["phase"].(string)
	printLinef(r.out, "step %d  %s  %s", step.Number, r.name(step.Resource), r.phase(phase))
	for _, c := range step.Changes {
		printLinef(r.out, "  %s %s", r.sign(c.Verb), r.name(c.Ref))
		r.fields(c)
	}
	components, _ := step.Status["components"].([]any)
	for _, c := range components {
		m, _ := c.(map[string]any)
		line := fmt.Sprintf("  %s: %v", r.mask.Text(fmt.Sprint(m["name"])), r.ink.state(fmt.Sprint(m["state"])))
		if text, _ := m["message"].(string); text != "" {
			line += ", " + r.mask.Text(text)
		}
		printLinef(r.out, "%s", line)
	}
	if len(step.Played) > 0 {
		printLinef(r.out, "  %s", r.ink.dim("simulated: "+r.mask.Text(names(step.Played))+" become ready"))
	}
	if step.Err != nil {
		printLinef(r.out, "  %s %s", r.ink.bad("error:"), r.mask.Text(step.Err.Error()))
	}
}

// name is an object as it is printed.
func (r *rehearsal) name(ref cluster.Ref) string { return r.mask.Text(ref.String()) }

// fields prints what a change does to the fields of an object.
func (r *rehearsal) fields(c cluster.Event) {
	if !slices.Contains(r.inFull, c.Verb) {
		return
	}
	all := r.mask.Fields(c.Before, c.Object)
	for i, f := range all {
		if i == maxFields {
			printLinef(r.out, "      and %d more", len(all)-i)
			return
		}
		line := f.String()
		if c.Verb == cluster.Created {
			line = f.Path + ": " + f.After
		}
		printLinef(r.out, "      %s", line)
	}
}

// names lists objects.
func names(refs []cluster.Ref) string {
	out := make([]string, len(refs))
	for i, ref := range refs {
		out[i] = ref.String()
	}
	return strings.Join(out, ", ")
}

func (r *rehearsal) sign(verb cluster.Verb) string {
	sign := signs[verb]
	switch verb {
	case cluster.Created:
		return r.ink.good(sign)
	case cluster.Deleted:
		return r.ink.bad(sign)
	case cluster.Updated:
	}
	return r.ink.warn(sign)
}

func (r *rehearsal) phase(phase string) string {
	switch phase {
	case "":
		return r.ink.dim("gone")
	case "Ready":
		return r.ink.good(phase)
	case "Failed":
		return r.ink.bad(phase)
	}
	return r.ink.warn(phase)
}

// conclude prints what there is in the end, and says what is not ready.
func (r *rehearsal) conclude(errs io.Writer) error {
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

// tree prints a resource and all that it owns, with those of its objects that are
// custom resources of the packages themselves.
func (r *rehearsal) tree(ref cluster.Ref, first, rest string) {
	word := r.ink.good("Ready")
	if ready, _ := r.world.Ready(ref); !ready {
		word = r.ink.bad("not ready")
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

// remove deletes the custom resources, and says what is left.
func (r *rehearsal) remove(ctx context.Context, errs io.Writer) error {
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

// configKey returns the name of the ConfigMap with configuration.
func (f runFlags) configKey() (types.NamespacedName, error) {
	if f.configMap == "" {
		return types.NamespacedName{}, nil
	}
	namespace, name, ok := strings.Cut(f.configMap, "/")
	if !ok {
		return types.NamespacedName{}, usageError{fmt.Errorf("--config-map %s: write namespace/name", f.configMap)}
	}
	return types.NamespacedName{Namespace: namespace, Name: name}, nil
}
