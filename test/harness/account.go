package harness

// As returns the environment of an operator with a ServiceAccount of its own, by whom the audit log tells it from others.
func (s *Env) As(name string) *Env {
	s.T.Helper()
	out := *s
	out.actAsAccount(name)
	return &out
}

// actAsAccount has the operators act as a ServiceAccount of the namespace.
func (s *Env) actAsAccount(name string) {
	s.T.Helper()
	s.account, s.User = name, s.AccountUser(name)
	var err error
	if s.Kubeconfig, err = Suite.ControlPlane.KubeconfigFor(s.User, "system:serviceaccounts", "system:serviceaccounts:"+s.Namespace); err != nil {
		s.T.Fatal(err)
	}
}

// AsAdministrator has the operators that start from now on act as a user whom nothing is refused. The reason says why the roles that
// operetta rbac prints are not enough.
func (s *Env) AsAdministrator(reason string) {
	s.T.Helper()
	s.T.Logf("the operators of this test act as an administrator: %s", reason)
	s.ownRights, s.User = true, "operetta:"+s.Namespace
	var err error
	if s.Kubeconfig, err = Suite.ControlPlane.KubeconfigFor(s.User, "system:masters"); err != nil {
		s.T.Fatal(err)
	}
}

// WithClusterRoles has the operators that start from now on have their roles everywhere, whatever namespaces they serve. The reason says why.
func (s *Env) WithClusterRoles(reason string) {
	s.T.Helper()
	s.T.Logf("the operators of this test have roles everywhere: %s", reason)
	s.clusterRoles = true
}

// AdminUser is the person who runs commands in the test, whom nothing is refused.
func (s *Env) AdminUser() string { return "administrator:" + s.Namespace }

// AdminKubeconfig returns a file with the credentials of that person.
func (s *Env) AdminKubeconfig() string {
	s.T.Helper()
	file, err := Suite.ControlPlane.KubeconfigFor(s.AdminUser(), "system:masters")
	if err != nil {
		s.T.Fatal(err)
	}
	return file
}
