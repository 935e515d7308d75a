package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/evaluate"
	"operetta.dev/engine/object"
	"operetta.dev/engine/plan"
	"operetta.dev/engine/program"
	"operetta.dev/engine/render"
	"operetta.dev/engine/source"
	"operetta.dev/engine/worker"
)

const planLong = `Show what a changed package, or a changed custom resource, would do to every live resource: which
objects are created, updated field by field, recreated and deleted, which resources become invalid
and which line of the package says so, which components come in another order, and which permissions
the operator needs.

It reads the cluster with your permissions, in pages, and never writes to it. Each resource is then
reconciled in memory by the code of the operator until nothing changes any more, and all that is
written becomes healthy. So the plan shows the whole rollout, not its first step. With --from, it
reads a file of operetta dump instead of a cluster.

A paused resource is planned as if its pause ended. An object is undecided if it may be deleted or
recreated later and the plan cannot say so, for example because an evaluation takes too much.

Without --old, the plan has everything that the package would do to the live objects, including
what the operator would do anyway, such as undoing the edits of others. With --old, it has only
what the old package would not do; it then also shows the permissions that change.

With -f, the custom resources in the files are planned as if they were applied, and no others.

In memory there are no admission webhooks and no quotas, and fields that are no longer applied
do not get the defaults of the API server: they are shown as removed. Values of Secrets are never
shown, only that they differ.

The exit code is 0 if nothing changes, 2 if something does or a resource becomes invalid, and 1 if
there is no plan.`

const planExample = `  operetta plan ./cue/webapp

  # What does this change, compared with the version that runs?
  operetta plan new/webapp --old old/webapp

  # What would this resource do?
  operetta plan ./cue/webapp -f cr.yaml

  # Away from the cluster
  operetta dump ./cue/webapp -o webapp.tar.gz
  operetta plan ./cue/webapp --from webapp.tar.gz -o json`

// planFlags are the settings of `operetta plan` and, in part, of `operetta dump`.
type planFlags struct {
	cluster       clusterFlags
	old, from     string
	files         []string
	namespaces    object.Namespaces
	allNamespaces bool
	configMap     string
	output        string
	// contextNamespace is the namespace of the context, or "" without a cluster.
	contextNamespace string
}

func newPlan(s streams) *cobra.Command {
	var f planFlags
	cmd := &cobra.Command{
		Use:               "plan [package]",
		Short:             "Show what a changed package would do to live resources",
		Long:              planLong,
		Example:           planExample,
		Args:              usageArgs(cobra.MaximumNArgs(1)),
		ValidArgsFunction: completeFolders,
		PreRunE:           func(*cobra.Command, []string) error { return f.check() },
		RunE:              func(cmd *cobra.Command, args []string) error { return f.run(cmd.Context(), s, args) },
	}
	f.addFlags(cmd)
	addOverlayFlag(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.old, "old", "", "folder of the package that runs now: only what differs from it counts")
	flags.StringVar(&f.from, "from", "", "file of operetta dump, or its folder, to read in place of the cluster")
	flags.StringArrayVarP(&f.files, "filename", "f", nil, "file with changed custom resources; - is standard input")
	outputFlag(cmd, &f.output, formatText, formatJSON)
	completeManifests(cmd, "filename")
	must(cmd.MarkFlagDirname("old"))
	return cmd
}

// addFlags adds the flags that say which resources are read.
func (f *planFlags) addFlags(cmd *cobra.Command) {
	f.cluster.addFlags(cmd)
	flags := cmd.Flags()
	namespacesFlag(cmd, &f.namespaces, "only the resources in these `namespaces`, separated by commas; repeat the flag for more; all by default")
	f.cluster.completeNamespaces(cmd)
	flags.BoolVarP(&f.allNamespaces, "all-namespaces", "A", false, "the resources in all namespaces, which is the default")
	flags.StringVar(&f.configMap, "config-map", "", "namespace/name of the ConfigMap with the configuration, as with operetta run")
}

// check rejects flags that contradict each other.
func (f *planFlags) check() error {
	switch {
	case !f.namespaces.All() && f.allNamespaces:
		return usageError{errors.New("-n and -A exclude each other")}
	case f.from != "" && (f.cluster.kubeconfig != "" || f.cluster.context != ""):
		return usageError{errors.New("--from needs no cluster: leave out --kubeconfig and --context")}
	}
	return nil
}

// run makes a plan and prints it.
func (f *planFlags) run(ctx context.Context, s streams, args []string) error {
	o, end, err := f.options(ctx, s, args)
	if err != nil {
		return err
	}
	defer end()
	if err := f.given(ctx, s.in, &o); err != nil {
		return err
	}
	p, err := makePlan(ctx, s, o)
	if err != nil {
		return err
	}
	if f.old != "" {
		f.permissions(ctx, s, args, &p)
	}
	err = s.printAs(f.output, p, p.Text)
	if err == nil && p.Changes() {
		err = errDiffers
	}
	return err
}

// makePlan makes a plan, and shows on a terminal how far it is.
func makePlan(ctx context.Context, s streams, o plan.Options) (plan.Plan, error) {
	defer worker.ReduceGC()() // the worlds of resources are garbage at once
	shown := newProgress(s, "plan")
	defer shown.end()
	o.Progress = func(done, all int) { shown.tell(done, all, unitResources) }
	p, err := plan.Make(ctx, o)
	if ctx.Err() != nil {
		return p, errors.New("interrupted; nothing was written to the cluster")
	}
	return p, err
}

// options returns the settings of a plan, and what ends its workers.
func (f *planFlags) options(ctx context.Context, s streams, args []string) (plan.Options, func(), error) {
	o := plan.Options{Namespaces: f.namespaces, Parallel: runtime.GOMAXPROCS(0)}
	nothing := func() {}
	var err error
	if o.ConfigMap, err = parseConfigKey(f.configMap); err != nil {
		return o, nothing, err
	}
	pool, err := (&evaluationFlags{workers: planWorkers, time: worker.DefaultTime}).newPool(nil)
	if err != nil {
		return o, nothing, err
	}
	o.New, err = loadVersion(ctx, pool, args)
	if err == nil && o.New.Program.Meta().ClusterScoped {
		o.Namespaces = nil // its resources are in none
	}
	if err == nil && f.old != "" {
		var old plan.Version
		old, err = loadVersion(ctx, pool, []string{f.old})
		o.Old = &old
	}
	if err == nil {
		o.Cluster, o.Now, err = f.snapshot(s, o.New.Program)
	}
	if err != nil {
		pool.Close()
		return o, nothing, err
	}
	return o, pool.Close, nil
}

// planWorkers is how many processes evaluate for a plan.
const planWorkers = 2

// loadVersion loads a package as an operator runs it by default: CUE is asked about each resource, in workers that may die; a
// template only predicts the answer, and answers itself where nothing but live objects has changed.
func loadVersion(ctx context.Context, pool *worker.Pool, args []string) (plan.Version, error) {
	snapshot, err := readOne(args)
	if err != nil {
		return plan.Version{}, err
	}
	return compileVersion(ctx, pool, snapshot)
}

// compileVersion is loadVersion for a package that was read.
func compileVersion(ctx context.Context, pool *worker.Pool, snapshot *source.Snapshot) (plan.Version, error) {
	checked, err := commandExaminer().checkAndCompile(ctx, snapshot, examineAll)
	if err != nil {
		return plan.Version{}, err
	}
	return plan.Version{Program: checked.program, Evaluates: evaluatorOf(checked.program, pool.Package(checked.program)), CRD: checked.crd}, nil
}

// evaluatorOf returns what evaluates a package for a plan. No template decides there whether a resource is valid, as with the
// default of operetta run: a plan that says something else than the operator does would be worth nothing.
func evaluatorOf(p *program.Program, by evaluate.Backend) *evaluate.Evaluator {
	return evaluate.New(p, evaluate.Options{Backend: by, Templates: evaluate.TemplatesChecked})
}

// snapshot returns the cluster or the dump that is read, and the time that it shows.
func (f *planFlags) snapshot(s streams, p *program.Program) (plan.Snapshot, time.Time, error) {
	if f.from != "" {
		d, err := plan.ReadDump(f.from)
		if err != nil {
			return nil, time.Time{}, err
		}
		if err := d.Covers(f.namespaces); err != nil && !p.Meta().ClusterScoped {
			return nil, time.Time{}, fmt.Errorf("dump %s: %w", f.from, err)
		}
		printLinef(s.err, "note: this is about the dump %s of %s, and not about a cluster", f.from, d.Taken.Format(time.RFC3339))
		return d, d.Taken, nil
	}
	on, live, err := f.cluster.connect()
	if err != nil {
		return nil, time.Time{}, err
	}
	f.contextNamespace = on.namespace
	printLinef(s.err, "note: this is about the cluster at %s (context: %s)", on.server(), on.contextName())
	// What cannot be reached shows here, without the request that happens to be the first.
	_, err = live.Scope(context.Background(), p.GroupVersionKind())
	switch {
	case cluster.IsKindNotServed(err):
		printLinef(s.err, "note: the cluster does not serve %s; operetta crd prints its definition", p.GroupVersionKind().GroupKind())
	case err != nil:
		return nil, time.Time{}, on.outage(err)
	}
	namespaces := f.namespaces
	if p.Meta().ClusterScoped {
		namespaces = nil
	}
	return plan.NewLive(live, namespaces), time.Now(), nil
}

// given reads the custom resources of the files.
func (f *planFlags) given(ctx context.Context, in io.Reader, o *plan.Options) error {
	if len(f.files) == 0 {
		return nil
	}
	all, others, err := readGiven(ctx, in, runFlags{dryRun: dryRun{files: f.files}}, []*program.Program{o.New.Program})
	if err != nil {
		return err
	}
	if len(others) > 0 {
		return fmt.Errorf("%s is no custom resource of package %s: a plan changes nothing else", cluster.RefOf(others[0]), o.New.Program.Name())
	}
	for _, u := range all {
		if err := f.setNamespace(u, o.New.Program); err != nil {
			return err
		}
	}
	o.Given = all
	return nil
}

// setNamespace gives a resource the namespace that it would be created in. It errors if that may be one of several.
func (f *planFlags) setNamespace(u *unstructured.Unstructured, p *program.Program) error {
	switch {
	case p.Meta().ClusterScoped:
		u.SetNamespace("")
	case u.GetNamespace() != "":
	case len(f.namespaces) > 1:
		return usageError{fmt.Errorf("%s %s has no metadata.namespace, and -n names several: %s", u.GetKind(), u.GetName(), f.namespaces)}
	default:
		u.SetNamespace(cmp.Or(f.namespaces.Only(), f.contextNamespace, render.DefaultNamespace))
	}
	return nil
}

// permissions adds the permissions that change. Those of a package that cannot be derived are a note.
func (f *planFlags) permissions(ctx context.Context, s streams, args []string, p *plan.Plan) {
	roles := rbacFlags{}
	roles.options.OperatorNamespace, roles.options.ServiceAccount = defaultNamespace, defaultServiceAccount
	before, err := roles.rights(ctx, s, []string{f.old})
	var after rights
	if err == nil {
		after, err = roles.rights(ctx, s, args)
	}
	if err != nil {
		p.Notes = append(p.Notes, "the permissions are not known: "+faultsOf(err)[0].Error())
		return
	}
	p.Permissions = changes(before, after)
}
