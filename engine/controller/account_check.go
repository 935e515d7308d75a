package controller

import (
	"context"
	"fmt"
	"slices"
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
// status of each resource. Without an account it asks the same about the operator itself. It asks at the start, after each
// refused request of the account, and in an interval as long as something is missing.
type accountCheck struct {
	account object.Account
	// needs are what it asks about, in a number of places.
	needs  []permission
	places int
	ask    func(context.Context, permission) (bool, error)
	// changed is called with what is wrong, or "", whenever that changes.
	changed func(string)
	log     logr.Logger
	wake    chan struct{}
	// checked is closed once it has asked for the first time.
	checked chan struct{}

	mu    sync.Mutex
	wrong string
}

// addAccountCheck adds the check of the account of a package. What the operator itself lacks is asked about only if there are
// Packages that can say it.
func (m *Manager) addAccountCheck(c *packageController, p *program.Program) error {
	m.mu.RLock()
	asks := c.as.account != (object.Account{}) || m.packageChanged != nil
	m.mu.RUnlock()
	if !asks {
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
	out := &accountCheck{account: own.as, places: len(places), ask: ask, changed: changed, wake: make(chan struct{}, 1), checked: make(chan struct{})}
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
	first := sync.OnceFunc(func() { close(a.checked) })
	for {
		wrong, known := a.check(ctx)
		changed := known && ctx.Err() == nil && a.note(wrong)
		first()
		if changed {
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

// isOperator reports whether the check is about the operator itself.
func (a *accountCheck) isOperator() bool { return a.account == (object.Account{}) }

// concerns reports whether the check has to ask again after a request that lacked one of some permissions. Any request
// shows whether the operator may act as an account; the operator itself sends those for all packages.
func (a *accountCheck) concerns(account object.Account, lacked []permission) bool {
	return a.account == account && (!a.isOperator() || slices.ContainsFunc(lacked, func(p permission) bool {
		return p.group == a.needs[0].group && p.resource == a.needs[0].resource
	}))
}

// check asks the API server. It returns what is wrong, or "", and whether the API server has answered.
func (a *accountCheck) check(ctx context.Context) (string, bool) {
	select {
	case <-a.wake: // what was refused until now is asked about now
	default:
	}
	var lacks []string
	lackingIn := map[string]bool{}
	for _, need := range a.needs {
		allowed, err := a.ask(ctx, need)
		switch {
		case apierrors.IsForbidden(err) && a.isOperator():
			return "", true // it may not ask, which says nothing about the rest
		case apierrors.IsForbidden(err):
			return fmt.Sprintf("the operator may not act as ServiceAccount %s: it needs the permission to impersonate serviceaccounts %q in namespace %q: %v", a.account, a.account.Name, a.account.Namespace, err), true
		case err != nil:
			a.log.Info("whether a ServiceAccount has its rights is not known", "account", a.account.String(), "error", err.Error())
			return "", false
		case !allowed:
			lacks = append(lacks, need.String())
			lackingIn[need.namespace] = true
		}
	}
	switch {
	case len(lacks) == 0:
		return "", true
	case a.isOperator() && len(lackingIn) < a.places:
		return "", true // it serves the others, and one that it lacks a role in may have yet to come
	case a.isOperator():
		return "the operator " + strings.Join(lacks, ", ") + "; operetta rbac prints the roles from a folder with the package", true
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

// problem returns what is wrong, or "". It waits for the first answer, but not for long: what says that all is well must not say
// so before.
func (a *accountCheck) problem() string {
	if a == nil {
		return ""
	}
	select {
	case <-a.checked:
	case <-time.After(firstAccountCheck):
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.wrong
}

// String says that somebody lacks the permission, as an API server does.
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
	log, isOperator := m.options.Log.WithValues("package", pkg, "kind", kind.String()), account == (object.Account{})
	if !isOperator {
		log = log.WithValues("account", account.String())
	}
	switch {
	case isOperator && wrong != "":
		log.Info("the operator lacks rights for a package", "why", wrong)
	case isOperator:
		log.Info("the operator has its rights for a package again")
	case wrong != "":
		log.Info("the ServiceAccount of a package cannot be used", "why", wrong)
	default:
		log.Info("the ServiceAccount of a package can be used again")
	}
	m.mu.RLock()
	told := m.packageChanged
	m.mu.RUnlock()
	if told != nil {
		told(pkg)
	}
}

// AccountProblem returns why the ServiceAccount of the package of a kind cannot be used, or what the operator itself lacks
// for it, or "".
func (m *Manager) AccountProblem(kind schema.GroupKind) string {
	if c := m.controller(kind); c != nil {
		return c.account.problem()
	}
	return ""
}

// accountRefused has the checks ask again that a refused request of an account concerns.
func (m *Manager) accountRefused(account object.Account, lacked []permission) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	for _, c := range m.controllers {
		if c.added.Load() && c.account != nil && c.account.concerns(account, lacked) {
			wake(c.account.wake)
		}
	}
}
