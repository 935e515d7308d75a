package harness

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/pflag"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/controller"
	"operetta.dev/engine/object"
	"operetta.dev/engine/patch"
	"operetta.dev/engine/program"
	"operetta.dev/engine/rbac"
	"operetta.dev/engine/source"
	"operetta.dev/engine/vet"
	"operetta.dev/engine/worker"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// defaultAccount is the name of the ServiceAccount that is the first operator of a test.
const defaultAccount = "operator"

// roles are what the operators of a test may do: what operetta rbac prints for their packages and flags, and no more.
// Environments that As has returned share them.
type roles struct {
	t *testing.T

	mu sync.Mutex
	// everywhere says that an operator serves all namespaces.
	everywhere bool
	// options are those of the last operator of each account.
	options map[string]rbac.Options
	// packages are those of the cluster, and later versions of packages in folders.
	packages []examined
	// kinds are the custom resources of all packages, and used are the resources that they render and read, with these.
	kinds map[schema.GroupKind]bool
	used  map[schema.GroupResource]bool
	// webhooks are those of the test, by the name of their configurations.
	webhooks map[string]*Webhooks
	// applied are the roles and bindings, by their kind, namespace and name.
	applied map[string]*unstructured.Unstructured
}

func newRoles(t *testing.T) *roles {
	t.Helper()
	return &roles{t: t, options: map[string]rbac.Options{}, kinds: map[schema.GroupKind]bool{}, used: map[schema.GroupResource]bool{}, webhooks: map[string]*Webhooks{}, applied: map[string]*unstructured.Unstructured{}}
}

// examined is a package as operetta rbac sees it.
type examined struct {
	rbac.Package

	name string
}

// definition is the name of its CustomResourceDefinition.
func (e examined) definition() string { return e.Plural + "." + e.Kind.Group }

// snapshots has what was examined: tests share packages.
var snapshots = examinations{all: map[string]func() (examined, error){}}

// examinations are those of packages, by their digests and the scopes of the kinds of others.
type examinations struct {
	mu  sync.Mutex
	all map[string]func() (examined, error)
}

// of returns the function that examines a package once.
func (e *examinations) of(s *source.Snapshot, scopes vet.Scopes) func() (examined, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	key := fmt.Sprint(s.Digest(), s.Name(), scopes)
	if e.all[key] == nil {
		e.all[key] = sync.OnceValues(func() (examined, error) { return examineOne(s, scopes) })
	}
	return e.all[key]
}

// examine returns what the roles of packages follow from. The definitions of all of them say which kinds are cluster-scoped.
func examine(of ...*source.Snapshot) ([]examined, error) {
	scopes := vet.Scopes{}
	if len(of) > 1 {
		for _, s := range of {
			p, err := loadChecked(s)
			if err != nil {
				return nil, err
			}
			scopes[p.GroupVersionKind().GroupKind()] = map[bool]cluster.Scope{false: cluster.Namespaced, true: cluster.ClusterScoped}[p.Meta().ClusterScoped]
		}
	}
	var out []examined
	for _, s := range of {
		one, err := snapshots.of(s, scopes)()
		if err != nil {
			return nil, err
		}
		out = append(out, one)
	}
	return out, nil
}

func examineOne(s *source.Snapshot, scopes vet.Scopes) (examined, error) {
	p, err := loadChecked(s)
	if err != nil {
		return examined{}, err
	}
	uses, faults := vet.Examine(p, scopes).Uses()
	if err := faults.OrNil(); err != nil {
		return examined{}, err
	}
	return examined{rbac.Package{Uses: uses, Kind: p.GroupVersionKind().GroupKind(), Plural: p.Meta().Plural}, p.Name()}, nil
}

// examineLimits are what a worker may take to check the content of a package.
var examineLimits = worker.Limits{Memory: 1 << 30, Time: 10 * time.Second}

// loadChecked compiles a package that a worker has checked.
func loadChecked(s *source.Snapshot) (*program.Program, error) {
	if err := checkInWorker(s); err != nil {
		return nil, err
	}
	return program.Load(s)
}

// checkInWorker errors if a worker process does not end with the content of a package: some tests have contents that take all time or
// memory, and this process would not end with them either. The operator needs no roles for what it cannot serve.
func checkInWorker(s *source.Snapshot) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, Suite.Operetta, slices.Concat([]string{"worker", "check"}, examineLimits.Arguments(), []string{""})...)
	in, err := cmd.StdinPipe() // it is open until the worker has ended, which would end with it
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	sent := s.Send(in)
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("a worker does not end with it: %w", err)
	}
	return sent
}

// runFlags are the flags of operetta run on which the roles depend.
type runFlags struct {
	namespaces                                                  []string
	crds, lease, leaseNamespace, configMap, tokenFile, webhooks string
	elects, fromCluster                                         bool
	shards                                                      int
	folders                                                     []string
}

// parseRunFlags reads the arguments of operetta run.
func parseRunFlags(args []string) (runFlags, error) {
	var f runFlags
	set := pflag.NewFlagSet("run", pflag.ContinueOnError)
	set.ParseErrorsAllowlist.UnknownFlags = true
	set.StringSliceVar(&f.namespaces, "namespace", nil, "")
	set.StringVar(&f.crds, "crds", "apply", "")
	set.BoolVar(&f.elects, "leader-elect", false, "")
	set.StringVar(&f.lease, "leader-election-id", controller.DefaultLeaderElectionID, "")
	set.StringVar(&f.leaseNamespace, "leader-elect-namespace", "", "")
	set.StringVar(&f.configMap, "config-map", "", "")
	set.Bool("metrics-secure", true, "")
	set.StringVar(&f.tokenFile, "metrics-token-file", "", "")
	set.BoolVar(&f.fromCluster, "packages-from-cluster", false, "")
	set.StringVar(&f.webhooks, "webhook-configuration", "", "")
	set.IntVar(&f.shards, "shards", 0, "")
	set.StringArray("impersonate", nil, "")
	if err := set.Parse(args); err != nil {
		return f, err
	}
	f.folders = set.Args()
	return f, nil
}

// options returns the options of operetta rbac that stand for those of operetta run.
func (f runFlags) options(namespace, account string) rbac.Options {
	o := rbac.Options{
		Namespaces:        slices.DeleteFunc(slices.Sorted(slices.Values(f.namespaces)), func(n string) bool { return n == "" }),
		OperatorNamespace: namespace, ServiceAccount: account,
		Shards: f.shards, InstallsCRDs: f.crds == "apply", PackageObjects: f.fromCluster,
	}
	if len(o.Namespaces) == 0 {
		o.Namespaces = nil
	}
	if f.elects {
		o.LeaderElectionID = f.lease
	}
	// As operetta rbac, which gives an operator of some namespaces no right to ask the API server, and any other the right.
	o.SecureMetrics = o.Namespaces.All() && f.tokenFile == ""
	o.ConfigMapNamespace, o.ConfigMap, _ = strings.Cut(f.configMap, "/")
	return o
}

// GrantRun gives the account of an operator the roles for the arguments of operetta run. A folder whose package is broken has no
// roles, as operetta rbac prints none: Serves has to name it before.
func (s *Env) GrantRun(args ...string) {
	s.T.Helper()
	if s.ownRights {
		return
	}
	s.refusals.watch(s.User)
	f, err := parseRunFlags(args)
	if err != nil {
		s.T.Fatal(err)
	}
	if s.clusterRoles {
		f.namespaces = nil
	}
	o := f.options(s.Namespace, s.account)
	if f.elects && f.leaseNamespace != s.Namespace {
		s.T.Fatalf("the Lease is in namespace %q, and the operator in %q", f.leaseNamespace, s.Namespace)
	}
	dirs, err := source.Expand(f.folders)
	if err != nil {
		s.T.Fatal(err)
	}
	packages := s.examineFolders(dirs)
	s.roles.mu.Lock()
	defer s.roles.mu.Unlock()
	if was, known := s.roles.options[s.account]; known {
		o.PullSecrets, o.Impersonates = was.PullSecrets, was.Impersonates
	}
	s.roles.options[s.account] = o
	s.roles.everywhere = s.roles.everywhere || o.Namespaces.All()
	s.grantPackages(s.account, slices.Concat(packages, s.roles.packages))
	if w := s.roles.webhooks[f.webhooks]; w != nil {
		s.applyAll(s.account, w.rolesOf(s.account))
	}
}

// examineFolders returns the packages in folders, without those that are broken.
func (s *Env) examineFolders(dirs []string) []examined {
	s.T.Helper()
	var whole []*source.Snapshot
	for _, dir := range dirs {
		snapshot, err := source.Loader{}.Folder(dir)
		if err == nil {
			_, err = examine(snapshot)
		}
		if err != nil {
			s.T.Logf("no roles for %s: %v", dir, err)
			continue
		}
		whole = append(whole, snapshot)
	}
	out, err := examine(whole...)
	if err != nil {
		s.T.Fatal(err)
	}
	return out
}

// Serves gives the operators of a test, those that run and those that start later, the roles of packages in folders, besides
// those of the packages that they are started with: an administrator applies the roles of a version before the version.
func (s *Env) Serves(dirs ...string) {
	s.T.Helper()
	s.serves(s.examineFolders(dirs))
}

func (s *Env) serves(packages []examined) {
	s.T.Helper()
	if s.ownRights {
		return
	}
	s.roles.mu.Lock()
	defer s.roles.mu.Unlock()
	s.roles.packages = append(s.roles.packages, packages...)
	for _, account := range slices.Sorted(maps.Keys(s.roles.options)) {
		s.grantPackages(account, packages)
	}
}

// readsPullSecret gives the operators of a test the role to read a Secret for registries.
func (s *Env) readsPullSecret(name string) {
	s.T.Helper()
	s.extend(func(o *rbac.Options) { o.PullSecrets = append(o.PullSecrets, name) })
}

// actsAs gives the operators of a test the role to act as a ServiceAccount.
func (s *Env) actsAs(account object.Account) {
	s.T.Helper()
	s.extend(func(o *rbac.Options) { o.Impersonates = append(o.Impersonates, account) })
}

// extend changes the options of the operators that run, and applies the roles that follow.
func (s *Env) extend(change func(*rbac.Options)) {
	s.T.Helper()
	if s.ownRights {
		return
	}
	s.roles.mu.Lock()
	defer s.roles.mu.Unlock()
	for _, account := range slices.Sorted(maps.Keys(s.roles.options)) {
		o := s.roles.options[account]
		change(&o)
		s.roles.options[account] = o
		s.grantPackages(account, nil)
	}
}

// grantPackages applies the roles of an account for some packages. What it had before stays, as it does in a cluster. The caller holds the lock.
func (s *Env) grantPackages(account string, packages []examined) {
	s.T.Helper()
	o, plurals, definitions := s.roles.options[account], rbac.Plurals{}, []string{patch.CRD().Name}
	var of []rbac.Package
	for _, p := range packages {
		of, definitions = append(of, p.Package), append(definitions, p.definition())
		plurals[p.Kind] = p.Plural
		for _, use := range p.Kinds {
			if use.Plural != "" {
				plurals[use.GroupKind] = use.Plural
			}
			guess, _ := meta.UnsafeGuessKindToResource(use.WithVersion("v1"))
			s.roles.used[schema.GroupResource{Group: use.Group, Resource: cmp.Or(use.Plural, guess.Resource)}] = true
		}
		s.roles.kinds[p.Kind], s.roles.used[schema.GroupResource{Group: p.Kind.Group, Resource: p.Plural}] = true, true
	}
	var all []*unstructured.Unstructured
	for _, one := range rbac.Roles(of, plurals, definitions, o) {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(one)
		if err != nil {
			s.T.Fatal(err)
		}
		all = append(all, &unstructured.Unstructured{Object: content})
	}
	s.applyAll(account, all)
}

// applyAll applies roles and bindings, and waits until the account has what they allow.
func (s *Env) applyAll(account string, all []*unstructured.Unstructured) {
	s.T.Helper()
	all = slices.DeleteFunc(all, func(u *unstructured.Unstructured) bool { return !s.apply(u) })
	for _, u := range all {
		s.awaitRole(s.AccountUser(account), u)
	}
}

// apply creates a role or a binding, or adds the rules of a role to the one that is there. It reports whether it had to.
func (s *Env) apply(u *unstructured.Unstructured) bool {
	s.T.Helper()
	key := u.GetKind() + " " + u.GetNamespace() + "/" + u.GetName()
	present := s.roles.applied[key]
	if present == nil {
		s.Create(u)
		s.roles.applied[key] = u
		return true
	}
	rules, _ := Field(present, "rules").([]any)
	wanted, _ := Field(u, "rules").([]any)
	changed := false
	for _, rule := range wanted {
		text := fmt.Sprint(rule)
		if !slices.ContainsFunc(rules, func(r any) bool { return fmt.Sprint(r) == text }) {
			rules, changed = append(rules, rule), true
		}
	}
	if changed {
		s.roles.applied[key] = s.Patch(present, map[string]any{"rules": rules})
	}
	return changed
}

// awaitRole waits until the API server allows what a role does: it learns of roles and bindings by watches.
func (s *Env) awaitRole(user string, u *unstructured.Unstructured) {
	s.T.Helper()
	var role rbacv1.ClusterRole
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &role); err != nil || len(role.Rules) == 0 {
		return
	}
	rule := role.Rules[len(role.Rules)-1]
	if len(rule.Resources) == 0 {
		return
	}
	resource, sub, _ := strings.Cut(rule.Resources[0], "/")
	attributes := map[string]any{"namespace": u.GetNamespace(), "verb": rule.Verbs[0], "group": rule.APIGroups[0], "resource": resource, "subresource": sub}
	if len(rule.ResourceNames) > 0 {
		attributes["name"] = rule.ResourceNames[0]
	}
	Eventually(s.T, "the role "+u.GetName()+" to count", func() error {
		review := Object("authorization.k8s.io/v1", "SubjectAccessReview", "", "")
		review.Object["spec"] = map[string]any{"user": user, "resourceAttributes": attributes}
		if err := Suite.Admin.Create(s.T.Context(), review); err != nil {
			return err
		}
		if Field(review, "status", "allowed") != true {
			return ErrNotYet
		}
		return nil
	})
}

// addWebhooks adds webhooks whose roles an operator gets that serves them.
func (r *roles) addWebhooks(w *Webhooks) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.webhooks[w.Configuration] = w
}

// rolesOf returns the roles of the webhooks, and their bindings to an account.
func (w *Webhooks) rolesOf(account string) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, u := range w.roles {
		u = u.DeepCopy()
		u.SetName(u.GetName() + "-" + account)
		if ref, bound := u.Object["roleRef"].(map[string]any); bound {
			ref["name"] = u.GetName()
			u.Object["subjects"] = []any{map[string]any{"kind": "ServiceAccount", "namespace": w.Env.Namespace, "name": account}}
		}
		out = append(out, u)
	}
	return out
}

// remove deletes the roles that are beyond the namespace of the test. Its operators have ended.
func (r *roles) remove(namespace string) {
	ctx := context.WithoutCancel(r.t.Context()) // that of the test has ended
	for _, u := range r.applied {
		if u.GetNamespace() == namespace {
			continue
		}
		if err := client.IgnoreNotFound(Suite.Admin.Delete(ctx, u)); err != nil {
			r.t.Logf("removing %s %s: %v", u.GetKind(), u.GetName(), err)
		}
	}
}
