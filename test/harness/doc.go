// Package harness is what the tests on a real control plane share: the control plane
// and the binary under test, a namespace with a user for each test, the operator as a
// process, the objects of Kubernetes by name, waiting, and the audit log. It is not for
// tests of one package of the engine: those have test/clustertest.
//
//	func TestMain(m *testing.M) { harness.RunTests(m, harness.Setup{}) }
//
//	func TestSomething(t *testing.T) {
//		s := harness.NewEnv(t)
//		p := harness.NewTestPackage(t, "plain", body)
//		s.StartOperator(p.Dir)
//		s.ExpectResourceReady(s.Create(p.Thing(s, "shop", nil)))
//	}
package harness
