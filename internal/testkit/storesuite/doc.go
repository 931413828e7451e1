// Package storesuite runs the cases of a store's conformance suite.
//
// A case is named "Group/what holds". Groups run at the same time where each can have tables of its own; the cases of a
// group run one after the other, because they may share a server's clock, its retention and its generations.
package storesuite
