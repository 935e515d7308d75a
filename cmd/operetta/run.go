package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/klog/v2"
	"operetta.dev/engine/controller"
	"operetta.dev/engine/evaluate"
	"operetta.dev/engine/object"
	"operetta.dev/engine/packages"
	"operetta.dev/engine/patch"
	"operetta.dev/engine/reconcile"
	"operetta.dev/engine/registry"
	"operetta.dev/engine/source"
	"operetta.dev/engine/worker"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
)

// runFlags are the settings of `operetta run`.
type runFlags struct {
	// patterns are the arguments: folders and patterns of packages.
	patterns []string

	cluster clusterFlags
	crds    string
	log     logFlags
	// output is the format of a dry run and of a shadow.
	output string
	// otlp is the URL of a collector of traces.
	otlp      string
	configMap string
	stateDir  string
	// packageMemory is the memory limit of a worker; 0 stands for a limit that fits that of this process.
	packageMemory quantity
	// evaluation are the settings of the workers that evaluate.
	evaluation evaluationFlags
	packages   packageFlags
	webhooks   webhookFlags
	record     recordFlags
	accounts   impersonations
	// selector are the labels of the resources to serve.
	selector string
	options  controller.Options
	dryRun   dryRun
	shadow   shadowFlags
}

// The values of --crds: whether run applies CustomResourceDefinitions.
const (
	crdsApply = "apply"
	crdsLeave = "leave"
)

const runLong = `Run the operators of packages on a cluster until interrupted.

The command checks each package, installs its CustomResourceDefinition and reconciles its
custom resources. It watches the folders: a saved change takes effect within two seconds. If
you save a mistake, it prints file and line and keeps running the last good version. A
package that is broken at startup does not delay the others; it starts once it is repaired.

With --state-dir, the last good version of each package is stored in a folder and is used if
the package is broken at the next start. Without it, the resources of a broken package are
not reconciled. In both cases their status says so.

Custom resources are evaluated in processes of their own, with limits of time and memory. An
evaluation that exceeds one is ended, and the status of its resource says so; others go on.
After an interrupt the process exits within 20 seconds with exit code 0, even if a reconcile still
runs. It writes nothing after the interrupt.

With --packages-from-cluster, the command serves the Packages of the cluster, too: objects that
have the files of a package, or name the ConfigMap that does. Without folders, it serves only
those. docs/packages.md describes them.

With --shards N, N processes share the custom resources: each serves those of its --shard, which
follows from the UID of a resource. Shard 0 also installs the CustomResourceDefinitions, and
decides about the Packages of the cluster: the others serve what the status of a Package says
that it serves. The processes agree on N by a Lease: one with another N serves nothing until
all of the others have ended, so no resource is ever served by two of them. docs/install.md
describes them.

With --impersonate, the operator acts as a service account for all that concerns the custom
resources of a package: it reads and watches them, writes their objects and status and tears
them down with the rights of that account, and with none of its own. Its own user needs only
the right to impersonate the account. operetta rbac --impersonate prints the roles of both.

Custom resources of packages that do not run here are not reconciled. Deleted ones are still
cleaned up, using the inventory in their status; pass --package-missing=leave to leave that to
another process.

The default is the package in the current folder. The cluster comes from --kubeconfig, from
KUBECONFIG, from ~/.kube/config, or from the pod that the process runs in. The log starts
with the context, the address and the user. If only ~/.kube/config names the cluster and it
is not on this machine, you must confirm it: with y on a terminal, otherwise with --context.
`

func newRun(s streams) *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run [packages]",
		Short: "Run the operators of packages on a cluster",
		Long:  runLong + dryRunLong + shadowLong,
		Example: `  operetta run ./cue/...
  operetta run ./cue/webapp --kubeconfig dev.kubeconfig --log json

  # The packages that are objects of the cluster: kubectl apply of one file is a new operator
  operetta run --packages-from-cluster

  # What would happen, step by step? No cluster is needed.
  operetta run --dry-run ./cue/webapp -f config/samples/webapp.yaml --delete

  # What would this version of the package change on the cluster? Nothing is written.
  operetta run --dry-run=server ./cue/webapp

  # Does the package make the same as the operator that runs now? Nothing is written.
  operetta run --shadow --until-same --timeout 10m ./cue/webapp`,
		PreRunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.shadow.check(cmd.Flags()); err != nil {
				return err
			}
			return f.check()
		},
		ValidArgsFunction: completeFolders,
		RunE: func(cmd *cobra.Command, args []string) error {
			noteOldFlags(s, cmd)
			f.patterns = args
			dirs, err := f.folders(args)
			if err != nil {
				return err
			}
			switch f.dryRun.mode {
			case dryRunClient:
				return runClientDryRun(cmd.Context(), s, f, dirs)
			case dryRunServer:
				return runServerDryRun(cmd.Context(), s, f, dirs)
			}
			if f.shadow.on {
				return runShadow(cmd.Context(), s, f, dirs)
			}
			return runOperators(cmd.Context(), s, f, dirs)
		},
	}
	f.addClusterFlags(cmd)
	addOverlayFlag(cmd)
	f.addServingFlags(cmd)
	f.webhooks.addFlags(cmd, &f.options)
	f.record.addFlags(cmd)
	f.evaluation.addFlags(cmd)
	f.dryRun.addFlags(cmd)
	f.shadow.addFlags(cmd)
	outputFlag(cmd, &f.output, formatText, formatJSON)
	cmd.Flags().Lookup("output").Usage = "with --dry-run or --shadow: format, where json is an object a line"
	f.log.addFlags(cmd)
	return cmd
}

// addClusterFlags adds the flags about the cluster and the operator's place in it.
func (f *runFlags) addClusterFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	f.cluster.addFlags(cmd)
	namespacesFlag(cmd, &f.options.Namespaces, "serve only the custom resources in these `namespaces`, separated by commas; repeat the flag for more; all by default")
	f.cluster.completeNamespaces(cmd)
	flags.StringVar(&f.configMap, "config-map", "", "namespace/name of a ConfigMap with the configuration, under the key PACKAGE.yaml")
	flags.Var(&annotationList{value: &f.options.Allow, allowed: reconcile.Administrative}, "allow-annotations", "annotations of custom resources that affect others and are ignored unless listed here; none by default")
	f.accounts.addFlag(cmd)
	flags.StringVarP(&f.selector, "selector", "l", "", "labels of the custom resources to serve, such as team=a; all by default")
	completeFlag(cmd, "allow-annotations", unprefixed(reconcile.Administrative))
	flags.IntVar(&f.options.Concurrency, "concurrency", 4, "how many custom resources of a package are reconciled concurrently")
}

// addServingFlags adds the flags about what the process serves besides reconciles, and how it takes part.
func (f *runFlags) addServingFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.options.MetricsAddress, "metrics-bind-address", "", "address for Prometheus metrics, such as 127.0.0.1:8080; port 0 picks a free port and logs it; off by default")
	flags.BoolVar(&f.options.MetricsSecure, "metrics-secure", true, "serve metrics over TLS, to users whom the API server allows to get /metrics; --metrics-secure=false serves everybody, unencrypted")
	flags.StringVar(&f.options.MetricsTokenFile, "metrics-token-file", "", "file with the token of those who may read metrics; by default the API server is asked who may")
	flags.StringVar(&f.options.MetricsCertDir, "metrics-cert-dir", "", "folder with tls.crt and tls.key for the metrics; by default a self-signed certificate")
	flags.StringVar(&f.options.HealthAddress, "health-probe-bind-address", "", "address for /healthz and /readyz, such as 127.0.0.1:8081; port 0 picks a free port; off by default")
	flags.DurationVar(&f.options.ReconcileLimit, "reconcile-limit", defaultReconcileLimit, "how long one reconcile of a custom resource may take, without a response from the API server, before /healthz fails; 0 means no limit")
	flags.BoolVar(&f.options.LeaderElection, "leader-elect", false, "elect a leader with a Lease, so that only one of several processes acts")
	flags.StringVar(&f.options.LeaderElectionNamespace, "leader-elect-namespace", "", "namespace of the Lease; by default the namespace of the pod")
	flags.StringVar(&f.options.LeaderElectionID, "leader-election-id", controller.DefaultLeaderElectionID, "name of the Lease; operators of different packages in one namespace need one each")
	flags.IntVar(&f.options.Shard.Count, "shards", 0, "number of processes that share the custom resources, each with a shard of its own; needs --leader-elect")
	flags.IntVar(&f.options.Shard.Index, "shard", 0, "number of the shard of this process, from 0")
	choiceFlag(cmd, &f.crds, "crds", "apply CustomResourceDefinitions; with leave, do not apply them", crdsApply, crdsLeave)
	f.addOldFlags(cmd)
	choiceFlag(cmd, (*string)(&f.options.PackageMissing), "package-missing", "clean up deleted custom resources whose package does not run here, or leave them", string(controller.TearDownWithoutPackage), string(controller.LeaveWithoutPackage))
	choiceFlag(cmd, (*string)(&f.options.Templates), "templates", "what compiled templates evaluate: checked is what CUE has found valid, so CUE evaluates each change of a resource, its inputs and the configuration first; on is whatever there is a template for, which is an experiment; off is nothing", string(evaluate.TemplatesChecked), string(evaluate.TemplatesOn), string(evaluate.TemplatesOff))
	flags.StringVar(&f.stateDir, "state-dir", "", "folder that stores the last good version of each package for the next start; none by default")
	flags.Var(&f.packageMemory, "package-memory", "memory limit of the process that checks a package, such as 512Mi; by default a quarter of the limit of this process, at least 128Mi, at most 1Gi")
	flags.StringVar(&f.otlp, "otlp-endpoint", os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT"), "URL of an OpenTelemetry collector that gets a trace of each rollout by gRPC, such as http://127.0.0.1:4317; by default the value of OTEL_EXPORTER_OTLP_ENDPOINT, and off without it")
	flags.BoolVar(&f.packages.fromCluster, "packages-from-cluster", false, "serve the Packages of the cluster, besides those of folders")
	flags.StringVar(&f.packages.selector, "package-selector", "", "labels of the Packages to serve, such as team=a; all by default")
	flags.StringVar(&f.packages.pullSecretNamespace, "pull-secret-namespace", "", "namespace of the Secrets with credentials for the registries of Packages; by default the namespace of the pod")
	flags.StringArrayVar(&f.packages.insecure, "insecure-registry", nil, "host of a registry that is reached by plain HTTP, such as registry.test:5000; repeat the flag for more")
	flags.StringVar(&f.packages.signatures, "require-signatures", "", "file that says which repositories contents may come from, and which keys have to have signed them; by default what each Package says")
}

// addOldFlags adds the names that flags had before, so that a Deployment of an older version still starts.
func (f *runFlags) addOldFlags(cmd *cobra.Command) {
	cmd.Flags().DurationVar(&f.options.ReconcileLimit, "step-limit", defaultReconcileLimit, "")
	choiceFlag(cmd, (*string)(&f.options.PackageMissing), "strays", "", string(controller.TearDownWithoutPackage), string(controller.LeaveWithoutPackage))
	for old := range oldFlags {
		must(cmd.Flags().MarkHidden(old))
	}
}

// oldFlags are the names of flags in earlier versions, and their present ones.
var oldFlags = map[string]string{"step-limit": "reconcile-limit", "strays": "package-missing"}

// noteOldFlags says which flags have another name now. The library would say so on standard output.
func noteOldFlags(s streams, cmd *cobra.Command) {
	for _, old := range slices.Sorted(maps.Keys(oldFlags)) {
		if cmd.Flags().Changed(old) {
			printLinef(s.err, "note: --%s is --%s now", old, oldFlags[old])
		}
	}
}

// check errors if the flags contradict each other.
func (f *runFlags) check() error {
	if _, err := f.packages.check(); err != nil {
		return err
	}
	if f.packages.fromCluster && len(loader.Overlays) > 0 {
		return usageError{errors.New("--overlay: it is for packages in folders; for those of the cluster, kubectl apply an Overlay")}
	}
	if f.options.MetricsTokenFile != "" && !f.options.MetricsSecure {
		return usageError{errors.New("--metrics-token-file: a token must not travel unencrypted; leave --metrics-secure=false out")}
	}
	if f.output != formatText && f.dryRun.mode == "" && !f.shadow.on {
		return usageError{fmt.Errorf("-o %s needs --dry-run or --shadow; the log has the flag --log", f.output)}
	}
	if err := errors.Join(f.checkSelector(), f.checkShard()); err != nil {
		return err
	}
	return errors.Join(f.webhooks.check(&f.options), f.record.check(), f.dryRun.check())
}

// checkSelector reads the selector.
func (f *runFlags) checkSelector() error {
	if f.selector == "" {
		return nil
	}
	var err error
	if f.options.Selector, err = labels.Parse(f.selector); err != nil {
		return usageError{fmt.Errorf("--selector: %w", err)}
	}
	return nil
}

// checkShard errors if there is no such shard, or several processes would do what only one may.
func (f *runFlags) checkShard() error {
	err := f.options.Shard.Check()
	wrong := object.CheckLease(f.options.LeaderElectionID)
	switch {
	case f.options.LeaderElection && wrong != nil:
		return usageError{fmt.Errorf("--leader-election-id: %w", wrong)}
	case f.options.Shard == controller.Shard{}:
		return nil
	case err != nil:
		return usageError{fmt.Errorf("--shard, --shards: %w", err)}
	case !f.options.LeaderElection:
		return usageError{errors.New("--shards: it needs --leader-elect, so that no two processes have the same shard")}
	}
	return nil
}

// folders returns the folders of the packages to run: by default the current one, or none if packages
// come from the cluster.
func (f runFlags) folders(args []string) ([]string, error) {
	if f.packages.fromCluster && len(args) == 0 && f.dryRun.mode == "" {
		return nil, nil
	}
	return source.Expand(orDefault(args, "."))
}

// openLog returns the log, which is that of libraries, too.
func (f *runFlags) openLog(s streams) logr.Logger {
	log := f.log.open(s)
	ctrllog.SetLogger(log)
	klog.SetLogger(log)
	return log
}

// runOperators serves packages until the context ends.
func runOperators(ctx context.Context, s streams, f runFlags, dirs []string) error {
	log := f.openLog(s)
	for _, name := range f.unusedAccounts(dirs) {
		log.Info("warning: "+unusedAccount+"; it has an effect on the teardown of a package that is gone alone, and if the name is wrong, its package is served with the operator's own rights", "package", name, "account", f.accounts[name].String())
	}
	f.options.Log, f.options.Accounts = log, f.accounts
	var err error
	if f.options.ConfigMap, err = parseConfigKey(f.configMap); err != nil {
		return err
	}
	target, err := findTarget(f.cluster)
	if err != nil {
		return err
	}
	if err := target.confirm(ctx, s); err != nil {
		return err
	}
	target.logTarget(ctx, log)
	config := target.config
	logOutages(config, log)
	controller.StopWritesWithoutLease(config, f.options)
	tracer, stopTracing, err := startTracing(ctx, f.otlp, log)
	if err != nil {
		return err
	}
	defer stopTracing()
	f.options.Tracer = tracer
	if f.options.Capsules, err = f.recorder(); err != nil {
		return err
	}
	registries, err := f.registries()
	if err != nil {
		return err
	}
	o := &operator{log: log, config: config, flags: f, registries: registries, loader: source.Loader{Modules: registries, Overlays: loader.Overlays}}
	if o.examiner, o.flags.options.Workers, err = f.startWorkers(controller.WorkerMetrics); err != nil {
		return err
	}
	defer o.flags.options.Workers.Close()
	if f.stateDir != "" {
		if o.store, err = source.OpenLastGood(f.stateDir); err != nil {
			return err
		}
	}
	if err := o.installOwn(ctx); err != nil {
		return err
	}
	return o.run(ctx, dirs)
}

// startWorkers returns what examines and what evaluates packages, and leaves their workers room in the memory of the process.
func (f *runFlags) startWorkers(m *worker.Metrics) (*examiner, *worker.Pool, error) {
	available := availableMemory()
	limitHeap(available, f.evaluation.reserved(available, workerLimitsFor(available, int64(f.packageMemory))))
	e := newExaminer(f.packageMemory)
	pool, err := f.evaluation.newPool(m)
	if err == nil && available > 0 {
		e.room = pool.Lend
	}
	return e, pool, err
}

// installOwn installs the engine's own definitions before the start, unless the process is to lead first. If it lacks a permission, it does
// that later: once it has begun, it can say so.
func (o *operator) installOwn(ctx context.Context) error {
	if o.flags.crds != crdsApply || o.flags.options.LeaderElection {
		return nil
	}
	for _, definition := range o.flags.ownCRDs() {
		err := installCRD(ctx, o.config, o.log, o.flags.options.Namespaces, definition)
		if o.ownLater = apierrors.IsForbidden(err); o.ownLater {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// registries returns the client of registries. Modules are cached in the state folder, which may be the only one
// that the process can write to.
func (f runFlags) registries() (*registry.Client, error) {
	policy, err := f.packages.policy()
	o := registry.Options{Insecure: f.packages.insecure, Policy: policy}
	if f.stateDir != "" {
		o.CacheDir = filepath.Join(f.stateDir, "modules")
	}
	return registry.New(o), err
}

// ownCRDs returns the definitions of the engine's own kinds.
func (f runFlags) ownCRDs() []*apiextensionsv1.CustomResourceDefinition {
	out := []*apiextensionsv1.CustomResourceDefinition{patch.CRD()}
	if f.packages.fromCluster {
		out = append(out, packages.CRDs()...)
	}
	return out
}

// shortDigest returns the beginning of a digest, which is enough for a person to compare.
func shortDigest(digest string) string {
	const shown = len("sha256:") + 12
	return digest[:min(shown, len(digest))]
}
