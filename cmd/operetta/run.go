package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/klog/v2"
	"operetta.dev/engine/controller"
	"operetta.dev/engine/patch"
	"operetta.dev/engine/reconcile"
	"operetta.dev/engine/source"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
)

// runFlags are the settings of `operetta run`.
type runFlags struct {
	kubeconfig string
	context    string
	crds       string
	logFormat  string
	configMap  string
	stateDir   string
	// packageMemory is what a process that examines a package may have; 0 is what is left for it.
	packageMemory quantity
	options       controller.Options
	dryRun        dryRun
}

// What run does about CustomResourceDefinitions.
const (
	crdsApply = "apply"
	crdsLeave = "leave"
)

// defaultStepLimit is more than what can be evaluated in time for anybody.
const defaultStepLimit = 5 * time.Minute

const runLong = `Run the operators of packages on a cluster, until interrupted.

Each package is checked, its CustomResourceDefinition is installed, and its custom resources
are reconciled. While it runs, the folders are watched: a saved change takes effect within
two seconds, and one that is wrong is reported with its file and line while the last good
version goes on running. A package that is wrong from the start is waited for, and holds up
no other.

With --state-dir, the last good version is kept in a folder, and runs if the package is wrong
when the process is started again. Without it, the resources of a package that is wrong are not
reconciled. Either way their status says so.

A custom resource whose evaluation takes long, or never ends, leaves workers to the others, and
the log names it. Interrupted, the process ends within 20 seconds and with exit code 0, also when
such a step has not ended: nothing is written after the interruption.

Custom resources whose package does not run here are not reconciled. One that is deleted is torn
down all the same, from the inventory in its status; --strays leave leaves it to another process.

Without packages, it is the package in the current folder. The cluster is that of --kubeconfig,
of KUBECONFIG, of ~/.kube/config, or the one that the process runs in; the log begins with its
context, its address and the user. One that only ~/.kube/config names, and that is not of this
machine, has to be confirmed: on a terminal by y, and otherwise by --context.
`

func newRun(s streams) *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run [packages]",
		Short: "Run the operators of packages on a cluster",
		Long:  runLong + dryRunLong,
		Example: `  operetta run ./cue/...
  operetta run ./cue/webapp --kubeconfig dev.kubeconfig --log json

  # What would happen, step by step? No cluster is needed.
  operetta run --dry-run ./cue/webapp -f config/samples/webapp.yaml --delete

  # What would this version of the package change on the cluster? Nothing is written.
  operetta run --dry-run=server ./cue/webapp`,
		PreRunE:           func(*cobra.Command, []string) error { return f.dryRun.check() },
		ValidArgsFunction: folders,
		RunE: func(cmd *cobra.Command, args []string) error {
			dirs, err := source.Expand(orDefault(args, "."))
			if err != nil {
				return err
			}
			switch f.dryRun.mode {
			case dryRunClient:
				return rehearse(cmd.Context(), s, f, dirs)
			case dryRunServer:
				return rehearseLive(cmd.Context(), s, f, dirs)
			}
			return runOperators(cmd.Context(), s, f, dirs)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.kubeconfig, "kubeconfig", "", "file that says how to reach the cluster")
	flags.StringVar(&f.context, "context", "", "context of the kubeconfig")
	flags.StringVarP(&f.options.CustomResourceNamespace, "namespace", "n", "", "serve custom resources of this namespace only")
	flags.StringVar(&f.configMap, "config-map", "", "namespace/name of a ConfigMap with configuration, under the key PACKAGE.yaml")
	flags.Var(&annotationList{value: &f.options.Allow, allowed: reconcile.Administrative}, "allow-annotations", "annotations of a custom resource that count although they do something to others; by default none")
	complete(cmd, "allow-annotations", unprefixed(reconcile.Administrative))
	flags.IntVar(&f.options.Concurrency, "concurrency", 4, "how many custom resources of a package are reconciled at once")
	flags.StringVar(&f.options.MetricsAddress, "metrics-address", "", "where to serve Prometheus metrics, such as 127.0.0.1:8080; port 0 is a free one, which the log says")
	flags.StringVar(&f.options.HealthAddress, "health-address", "", "where to serve /healthz and /readyz, such as 127.0.0.1:8081; port 0 as well")
	flags.DurationVar(&f.options.StepLimit, "step-limit", defaultStepLimit, "how long one step of a custom resource may go on without an answer of the API server until /healthz fails; 0 is for ever")
	flags.BoolVar(&f.options.LeaderElection, "leader-elect", false, "let only one of several processes act, by a Lease")
	flags.StringVar(&f.options.LeaderElectionNamespace, "leader-elect-namespace", "", "where the Lease is; by default the namespace that the process runs in")
	choiceFlag(cmd, &f.crds, "crds", "what to do about CustomResourceDefinitions", crdsApply, crdsLeave)
	choiceFlag(cmd, (*string)(&f.options.Strays), "strays", "what to do about deleted custom resources whose package does not run here", string(controller.StraysTeardown), string(controller.StraysLeave))
	flags.StringVar(&f.stateDir, "state-dir", "", "folder that keeps the last good version of each package for the next start; by default none is kept")
	flags.StringVar(&f.options.WebhookAddress, "webhook-address", "", "where to serve admission webhooks by TLS, such as :9443")
	flags.StringVar(&f.options.WebhookCertDir, "webhook-cert-dir", "", "folder with tls.crt and tls.key for the webhooks")
	flags.Var(&f.packageMemory, "package-memory", "memory of a process that examines a package, such as 512Mi; by default at most half of what this process may have, and 1Gi")
	f.dryRun.addFlags(cmd)
	choiceFlag(cmd, &f.logFormat, "log", "format of the log", "text", formatJSON)
	return cmd
}

// choiceFlag adds a flag with its allowed values, the first of which is the default.
func choiceFlag(cmd *cobra.Command, into *string, name, help string, values ...string) {
	*into = values[0]
	cmd.Flags().Var(&choice{value: into, values: values}, name, help)
	complete(cmd, name, values)
}

// runOperators serves packages until the context ends.
func runOperators(ctx context.Context, s streams, f runFlags, dirs []string) error {
	log := newLog(s, f.logFormat)
	ctrllog.SetLogger(log)
	klog.SetLogger(log)
	f.options.Log = log
	var err error
	if f.options.ConfigMap, err = f.configKey(); err != nil {
		return err
	}
	on, err := findTarget(f)
	if err != nil {
		return err
	}
	if err := on.confirm(ctx, s); err != nil {
		return err
	}
	on.announce(ctx, log)
	config := on.config
	noticeOutages(config, log)
	o := &operator{log: log, config: config, flags: f}
	if o.examiner, err = newExaminer(f.packageMemory); err != nil {
		return err
	}
	if f.stateDir != "" {
		if o.kept, err = source.OpenKept(f.stateDir); err != nil {
			return err
		}
	}
	if f.crds == crdsApply {
		if err := installCRD(ctx, config, log, patch.CRD()); err != nil {
			return err
		}
	}
	return o.run(ctx, dirs)
}

// newLog returns the log: one line for an event, for people or for machines.
func newLog(s streams, format string) logr.Logger {
	options := &slog.HandlerOptions{Level: slog.LevelInfo, ReplaceAttr: shortTime}
	if format == formatJSON {
		return logr.FromSlogHandler(slog.NewJSONHandler(s.err, nil))
	}
	return logr.FromSlogHandler(slog.NewTextHandler(s.err, options))
}

// shortTime leaves out what buries the message for a person who reads live.
func shortTime(groups []string, a slog.Attr) slog.Attr {
	if a.Key == "reconcileID" {
		return slog.Attr{} // it tells the lines of one step apart, which matters to machines
	}
	if a.Key == slog.TimeKey && len(groups) == 0 {
		return slog.String(slog.TimeKey, a.Value.Time().Format("15:04:05.000"))
	}
	return a
}

// short returns a digest as people compare it.
func short(digest string) string {
	const shown = len("sha256:") + 12
	return digest[:min(shown, len(digest))]
}

// outageRetry is how often an API server that is away is tried at start-up.
const outageRetry = 2 * time.Second
