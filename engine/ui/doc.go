// Package ui serves pages that show the custom resources of a cluster as they are: a list of all, and for each one the
// tree of package explain and its picture. They refresh by themselves.
//
//	http.Serve(listener, ui.New(ui.Options{Source: source, Hosts: []string{listener.Addr().String()}}))
//
// It only reads, with the permissions of the person who has started it, and serves that person alone: it answers GET and
// HEAD, and only where the Host is one of the given ones, so that no page of the web can read it by a name that it
// controls. What is read is kept for a moment, so that many tabs cost the cluster no more than one. It listens nowhere and
// reads no cluster itself.
package ui
