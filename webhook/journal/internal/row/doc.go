// Package row is what the stores of the journal share about a row: which texts and times a database keeps as they are, how a list goes on from page to
// page, which types a filter means, and when two events of one id are not the same. Both stores write and list alike because they ask here.
package row
