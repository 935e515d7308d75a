// Package admission judges what is about to be written, for an API server that asks
// before it writes. It is the webhooks' part that decides; it serves nothing, and what it
// has to know of the cluster it asks its caller.
//
//	Patches   whether its author may patch what a Patch names
//
// It comes to the same as the policies of package policy, which need no webhook.
package admission
