package controller

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/object"
)

// ActAs sets the ServiceAccount as which the requests for the resources of a kind are sent; the zero value stands for
// the process itself. Call it before the controller of the kind is created: a running controller keeps its account
// until it is withdrawn. A teardown without a package is restarted as the account.
func (m *Manager) ActAs(kind schema.GroupKind, account object.Account) {
	m.mu.Lock()
	was, known := m.accounts[kind]
	m.accounts[kind] = account
	served := m.controllers[kind] != nil
	m.mu.Unlock()
	if !served && (!known || was != account) {
		m.packageMissing.restart(kind)
	}
}

// accountOf returns the account that sends the requests for the resources of a kind.
func (m *Manager) accountOf(kind schema.GroupKind) object.Account {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if c := m.controllers[kind]; c != nil && c.as != nil {
		return c.as.account
	}
	return m.accounts[kind]
}

// accountWithout returns the account that tears down the resources of a kind whose package is not loaded: that which was set for the kind,
// then of the package, then as the account that was the last to serve it, which the definition names. A user who can write definitions
// could name any account there; the rights of the operator say which it may act as.
func (m *Manager) accountWithout(k packageMissingKind) object.Account {
	m.mu.RLock()
	account, said := m.accounts[k.GroupKind()]
	m.mu.RUnlock()
	if said {
		return account
	}
	if account, said = m.options.Accounts[k.pkg]; said {
		return account
	}
	return k.lastAccount
}

// restart watches the resources of a broken package again if its kind is watched: as another account.
func (s *packageMissingTeardown) restart(kind schema.GroupKind) {
	s.mu.Lock()
	k := s.watched[kind]
	s.mu.Unlock()
	if k == nil || k.broken == nil {
		return // there is nothing to do until a package is served, which ends the watch
	}
	s.release(kind)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.broken {
		b.kindsFound = false
	}
	wake(s.changed)
}
