// Package migration stores the objects of a definition anew in its storage version, and then says in the definition that no
// other version is stored any more.
//
// Read reads a definition and refuses one whose objects would lose something. Run lists the metadata of its objects in
// pages, and sends for each a patch that changes nothing: the API server reads what is stored, converts it, and stores it
// again because the bytes differ. What is in the storage version already costs a request, and is not written. So a
// migration may end anywhere, run twice at once, and begin anew.
package migration
