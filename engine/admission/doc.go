// Package admission decides about admission requests of an API server. It is the logic of
// the webhooks: it serves nothing itself, and asks its caller about the cluster.
//
//	Resources  whether a custom resource is what its package allows, and which defaults and labels it gets
//	Patches    whether the author of a Patch may update the kinds that it names
//	Conversions  what a custom resource of one version is in another one
//	Handler    reads the reviews of one path, and writes the answers
//
//	             ┌─ kind, deletion, what the package sees of a change ──> allowed, without a review
//	Handler ─────┤
//	             └─ a turn of the tenant ──> Session ──> Review ──> Validate or Mutate
//
// Resources asks the package as a reconcile does, so that what is accepted is what can be rendered.
// Patches decides like the policies of package policy, which need no webhook.
//
// A request that nobody can judge is neither allowed nor refused: the Handler answers with the status code
// of an error, and the API server does what the failure policy of its configuration says.
package admission
