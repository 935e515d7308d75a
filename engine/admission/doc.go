// Package admission decides about admission requests of an API server. It is the logic of
// the webhooks: it serves nothing itself, and asks its caller about the cluster.
//
//	Patches   whether the author of a Patch may update the kinds that it names
//
// It decides like the policies of package policy, which need no webhook.
package admission
