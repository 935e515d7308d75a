package controller

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/object"
	"operetta.dev/engine/program"
)

// An accountCheck says whether the operator may act as the ServiceAccount of a package, and whether the account has what
// a controller cannot do without: to read its custom resources and to write their status. What it lacks besides is in the
// status of each resource. It asks at the start, after each refused request of the account, and in an interval as long as
// something is missing.
type accountCheck struct {
	account object.Account
	// needs are what it asks about.
	needs []permission
	ask   func(context.Context, permission) (bool, error)
	// changed is called with what is wrong, or "", whenever that changes.
	changed func(string)
	log     logr.Logger
	wake    chan struct{}

	mu    sync.Mutex
	wrong string
}

// addAccountCheck adds the check of the account of a package, if it has one.
func (m *Manager) addAccountCheck(c *packageController, p *program.Program) error {
	if c.as.account == (object.Account{}) {
		return nil
	}
	kind := p.GroupVersionKind().GroupKind()
	own := permission{group: kind.Group, resource: p.Meta().Plural, as: c.as.account}
	places := m.options.Namespaces.Lists()
	if p.Meta().ClusterScoped {
		places = []string{""}
	}
	c.account = newAccountCheck(own, places, m.ask, func(wrong string) { m.accountChanged(kind, p.Name(), c.as.account, wrong) })
	c.account.log = m.options.Log
	return m.addPart(c, c.account)
}

// newAccountCheck returns the check of an account in some namespaces, of which "" is all.
func newAccountCheck(own permission, places []string, ask func(context.Context, permission) (bool, error), changed func(string)) *accountCheck {
	out := &accountCheck{account: own.as, ask: ask, changed: changed, wake: make(chan struct{}, 1)}
	for _, own.namespace = range places {
		for _, one := range [][2]string{{"list", ""}, {"watch", ""}, {"patch", "status"}} {
			own.verb, own.subresource = one[0], one[1]
			out.needs = append(out.needs, own)
		}
	}
	return out
}

// Start implements manager.Runnable.
func (a *accountCheck) Start(ctx context.Context) error {
	for {
		wrong, known := a.look(ctx)
		if known && ctx.Err() == nil && a.note(wrong) {
			a.changed(wrong)
		}
		pause := time.After(refusedInterval)
		if known && wrong == "" {
			select { // nothing is asked while nothing is refused
			case <-ctx.Done():
				return nil
			case <-a.wake:
			}
		}
		select { // nor more often than that
		case <-ctx.Done():
			return nil
		case <-pause:
		}
	}
}

// refused has the check ask again.
func (a *accountCheck) refused() {
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// look asks the API server. It returns what is wrong, or "", and whether the API server has answered.
func (a *accountCheck) look(ctx context.Context) (string, bool) {
	select {
	case <-a.wake: // what was refused until now is asked about now
	default:
	}
	var lacks []string
	for _, need := range a.needs {
		allowed, err := a.ask(ctx, need)
		switch {
		case apierrors.IsForbidden(err):
			return fmt.Sprintf("the operator may not act as ServiceAccount %s: it needs the permission to impersonate serviceaccounts %q in namespace %q: %v", a.account, a.account.Name, a.account.Namespace, err), true
		case err != nil:
			a.log.Info("whether a ServiceAccount has its rights is not known", "account", a.account.String(), "error", err.Error())
			return "", false
		case !allowed:
			lacks = append(lacks, need.String())
		}
	}
	if len(lacks) == 0 {
		return "", true
	}
	return fmt.Sprintf("ServiceAccount %s %s", a.account, strings.Join(lacks, ", ")), true
}

// note notes what is wrong, and reports whether that has changed.
func (a *accountCheck) note(wrong string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	defer func() { a.wrong = wrong }()
	return a.wrong != wrong
}

// what returns what is wrong, or "".
func (a *accountCheck) what() string {
	if a == nil {
		return ""
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.wrong
}

// String says that an account lacks the permission, as an API server does.
func (p permission) String() string {
	resource := p.resource
	if p.subresource != "" {
		resource += "/" + p.subresource
	}
	text := fmt.Sprintf("cannot %s resource %q in API group %q", p.verb, resource, p.group)
	if p.namespace == "" {
		return text + " at the cluster scope"
	}
	return text + fmt.Sprintf(" in the namespace %q", p.namespace)
}

// accountChanged tells what is wrong with the account of a package, or that nothing is any more.
func (m *Manager) accountChanged(kind schema.GroupKind, pkg string, account object.Account, wrong string) {
	if wrong != "" {
		m.options.Log.Info("the ServiceAccount of a package cannot be used", "package", pkg, "kind", kind.String(), "account", account.String(), "why", wrong)
	} else {
		m.options.Log.Info("the ServiceAccount of a package can be used again", "package", pkg, "kind", kind.String(), "account", account.String())
	}
	m.mu.RLock()
	told := m.packageChanged
	m.mu.RUnlock()
	if told != nil {
		told(pkg)
	}
}

// AccountProblem returns why the ServiceAccount of the package of a kind cannot be used, or "".
func (m *Manager) AccountProblem(kind schema.GroupKind) string {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if c := m.controllers[kind]; c != nil {
		return c.account.what()
	}
	return ""
}

// accountRefused has the checks of an account ask again.
func (m *Manager) accountRefused(account object.Account) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	for _, c := range m.controllers {
		if check := c.account; check != nil && check.account == account {
			check.refused()
		}
	}
}
