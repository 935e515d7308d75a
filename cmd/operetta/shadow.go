package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/evaluate"
	"operetta.dev/engine/plan"
	"operetta.dev/engine/program"
	"operetta.dev/engine/shadow"
	"operetta.dev/engine/source"
	"operetta.dev/engine/worker"
)

const shadowLong = `

With --shadow, packages are compared with what another operator of the same kind has made, and
nothing is written: no object, no status, no event and no CustomResourceDefinition. Each resource
gets a line when it becomes the same or differs otherwise than before, with the objects that are
missing, those that only the other operator has, and each field with its live and its wanted
value and its manager. Only fields that the package renders are compared. The owner of an object
does not matter. When you save a change of a package, everything is compared again. With
--until-same, the command exits with 0 once all resources are the same, and with 2 if they are not
after --timeout. It reads with the permissions that operetta rbac --shadow prints. docs/shadow.md
describes how to take over a kind.`

// shadowFlags are the settings of `operetta run --shadow`.
type shadowFlags struct {
	on, untilSame bool
	timeout       time.Duration
	ignore        []string
}

// addFlags adds the flags.
func (f *shadowFlags) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVar(&f.on, "shadow", false, "compare packages with what another operator has made of their resources, and write nothing")
	flags.BoolVar(&f.untilSame, "until-same", false, "with --shadow: exit with 0 once all resources are the same")
	flags.DurationVar(&f.timeout, "timeout", 0, "with --until-same: exit with 2 if they are not by then; by default there is no limit")
	flags.StringArrayVar(&f.ignore, "ignore", nil, "with --shadow: `KIND or KIND/NAME` of objects that only the other operator needs, where NAME may have *, as in ConfigMap/leader-* (repeatable)")
}

// besideShadow are the flags that have a meaning with --shadow. All others are about what a shadow does not do.
var besideShadow = []string{
	"shadow", "until-same", "timeout", "ignore", "output", "kubeconfig", "context", "namespace", "config-map", "overlay", "concurrency",
	"templates", "evaluation-workers", "evaluation-time", "evaluation-memory", "package-memory", "log", "log-level", "help",
}

// check rejects flags that contradict each other.
func (f *shadowFlags) check(flags *pflag.FlagSet) error {
	if !f.on {
		for _, name := range []string{"until-same", "timeout", "ignore"} {
			if flags.Changed(name) {
				return usageError{fmt.Errorf("--%s needs --shadow", name)}
			}
		}
		return nil
	}
	if f.timeout != 0 && !f.untilSame || f.timeout < 0 {
		return usageError{errors.New("--timeout is how long --until-same waits: give both, and more than 0")}
	}
	var wrong []string
	flags.Visit(func(flag *pflag.Flag) {
		if !slices.Contains(besideShadow, flag.Name) {
			wrong = append(wrong, "--"+flag.Name)
		}
	})
	if len(wrong) > 0 {
		return usageError{fmt.Errorf("%s: leave it out with --shadow, which only reads and compares", strings.Join(wrong, ", "))}
	}
	_, err := f.ignored()
	return err
}

// ignored returns the objects that are ignored.
func (f *shadowFlags) ignored() ([]shadow.Ignored, error) {
	var out []shadow.Ignored
	for _, text := range f.ignore {
		i, err := shadow.ParseIgnored(text)
		if err != nil {
			return nil, usageError{fmt.Errorf("--ignore %w", err)}
		}
		out = append(out, i)
	}
	return out, nil
}

// A shadowRun is a running `operetta run --shadow`.
type shadowRun struct {
	*shadow.Shadow

	flags    runFlags
	out      shadowPrinter
	pool     *worker.Pool
	examiner *examiner
}

// runShadow compares packages until the context ends, or all is the same.
func runShadow(ctx context.Context, s streams, f runFlags, dirs []string) error {
	f.openLog(s)
	r := &shadowRun{flags: f, out: newShadowPrinter(s, f.output)}
	var err error
	if r.examiner, r.pool, err = f.startWorkers(nil); err != nil {
		return err
	}
	defer r.pool.Close()
	first, err := r.load(ctx, dirs)
	if err != nil {
		return err
	}
	if err := r.connect(s); err != nil {
		return err
	}
	for _, a := range first {
		r.Serve(r.version(a.checkedPackage))
	}
	return r.follow(ctx, first)
}

// load loads the packages for the first time. A person who has named a broken one wants to repair it before anything is compared.
func (r *shadowRun) load(ctx context.Context, dirs []string) ([]firstLoad, error) {
	var out []firstLoad
	for _, dir := range dirs {
		snapshot, err := loader.Folder(dir)
		if err != nil {
			return nil, folderFault(dir, err)
		}
		checked, err := r.examiner.checkAndCompile(ctx, snapshot, examineAll)
		if err != nil {
			return nil, err
		}
		out = append(out, firstLoad{checkedPackage: checked, dir: dir, state: source.Fingerprint(snapshot, nil)})
	}
	return out, checkKindsUnique(out)
}

// version returns a package as an operator with the same flags evaluates it.
func (r *shadowRun) version(c checkedPackage) plan.Version {
	by := evaluate.New(c.program, evaluate.Options{Backend: r.pool.Package(c.program), Templates: r.flags.options.Templates})
	return plan.Version{Program: c.program, Evaluates: by, CRD: c.crd}
}

// connect makes the shadow of a cluster.
func (r *shadowRun) connect(s streams) error {
	on, err := findTarget(r.flags.cluster)
	if err != nil {
		return err
	}
	printLinef(s.err, "note: this compares with the cluster at %s (context: %s), and writes nothing", on.server(), on.contextName())
	o := shadow.Options{Namespaces: r.flags.options.Namespaces, Concurrency: r.flags.options.Concurrency, UntilSame: r.flags.shadow.untilSame, Printer: r.out}
	if o.ConfigMap, err = parseConfigKey(r.flags.configMap); err != nil {
		return err
	}
	if o.Ignore, err = r.flags.shadow.ignored(); err != nil {
		return err
	}
	// It lists every kind that there is, and the API server warns of those that nobody should use any more.
	on.config.WarningHandler = rest.NoWarnings{}
	if o.Cluster, err = cluster.NewUncachedLive(on.config); err != nil {
		return err
	}
	o.Mapper = cluster.CacheMappings(o.Cluster.Client.RESTMapper())
	if o.Metadata, err = metadata.NewForConfig(on.config); err != nil {
		return err
	}
	r.Shadow = shadow.New(o)
	return nil
}

// follow compares until the context ends, or all is the same, while the folders are watched.
func (r *shadowRun) follow(ctx context.Context, first []firstLoad) error {
	limited, cancel := context.WithCancel(ctx)
	if r.flags.shadow.timeout > 0 {
		limited, cancel = context.WithTimeout(ctx, r.flags.shadow.timeout)
	}
	defer cancel()
	var watches sync.WaitGroup
	for _, a := range first {
		watches.Go(func() { r.watchFolder(limited, a) })
	}
	last := r.Run(limited)
	isTimeout := errors.Is(limited.Err(), context.DeadlineExceeded)
	cancel()
	watches.Wait()
	switch {
	case !r.flags.shadow.untilSame:
		return nil
	case isTimeout && last.All == 0:
		return fmt.Errorf("after %s nothing was compared", r.flags.shadow.timeout)
	case isTimeout && last.Pending+last.Unreadable > 0:
		return fmt.Errorf("after %s: %s", r.flags.shadow.timeout, last)
	case isTimeout:
		r.out.say(fmt.Sprintf("after %s: %s", r.flags.shadow.timeout, last))
		return errDiffers
	case ctx.Err() != nil:
		return fmt.Errorf("interrupted: %s", last)
	}
	return nil
}

// watchFolder compares with the next version of a package whenever its files change. While that is broken, the
// one before goes on.
func (r *shadowRun) watchFolder(ctx context.Context, first firstLoad) {
	serves := first.program
	source.Watch(ctx, first.state, source.Final, loader.NewReader(first.dir).Read, func(snapshot *source.Snapshot, err error) source.Outcome {
		var next checkedPackage
		if err == nil {
			next, err = r.examiner.checkAndCompile(ctx, snapshot, examineAll)
		} else {
			err = folderFault(first.dir, err)
		}
		if ctx.Err() != nil {
			return source.Final
		}
		if err != nil {
			r.Outdated(serves.GroupVersionKind().GroupKind())
			for _, f := range faultsOf(err) {
				r.out.Note("the changed package is broken, and " + shortDigest(serves.Digest()) + " goes on being compared: " + f.Error())
			}
			return source.Final
		}
		r.swap(serves, next)
		serves = next.program
		return source.Final
	})
}

// swap compares with another version of a package.
func (r *shadowRun) swap(before *program.Program, next checkedPackage) {
	r.out.Note(fmt.Sprintf("package %s has changed: %s, and was %s", next.program.Name(), shortDigest(next.program.Digest()), shortDigest(before.Digest())))
	if was := before.GroupVersionKind().GroupKind(); was != next.program.GroupVersionKind().GroupKind() {
		r.Withdraw(was)
	}
	r.Serve(r.version(next))
}
