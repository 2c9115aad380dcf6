//! Why a patch could not be made or applied, in the words of the Kubernetes packages people already search for.

/// Why a patch could not be made or applied.
///
/// The texts are those of `k8s.io/apimachinery`, so that a message from here is the message Helm would have shown.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// One of the three inputs is neither an object nor null.
    #[error("invalid JSON document")]
    NotAnObject,
    /// A map or list differs in a field that its type does not have.
    #[error("unable to find api field in struct {owner} for the json field {field:?}")]
    UnknownField {
        /// The type that was searched.
        owner: &'static str,
        /// The field it lacks.
        field: String,
    },
    /// Maps or lists differ inside a value whose type has no fields.
    #[error("merging an object in json but data type is not struct, instead is: {shape}")]
    Opaque {
        /// What the value is instead of a struct.
        shape: &'static str,
    },
    /// A list was given for a field that holds one object.
    #[error("expected slice or array type, but got: struct")]
    NotAList,
    /// A list of lists where merging was asked for.
    #[error("lists of lists are not supported")]
    ListOfLists,
    /// A field whose type is a list of lists.
    #[error("unexpected slice of slice")]
    ListOfListsField,
    /// Elements of one merging list, live and wanted together, have different types.
    #[error("list element types are not identical: {lists}")]
    MixedList {
        /// The lists, as Go prints them.
        lists: String,
    },
    /// An ordering was given for a list that has no elements.
    #[error("no elements in any of the given slices")]
    NoElements,
    /// An element of a merging list lacks the field it is recognised by.
    #[error("map: {element} does not contain declared merge key: {key}")]
    NoMergeKey {
        /// The element, as Go prints it.
        element: String,
        /// The field it lacks.
        key: String,
    },
    /// A merging list of objects for which no merge key is declared.
    #[error("cannot merge lists without merge key for {shape}")]
    NoDeclaredMergeKey {
        /// What the elements are.
        shape: &'static str,
    },
    /// A value has another type than its place requires.
    #[error("expected a {expected}, but received a {received}")]
    WrongType {
        /// The Go type required.
        expected: &'static str,
        /// The Go type found.
        received: &'static str,
    },
    /// `$patch` holds something other than a string.
    #[error("invalid value for special key: $patch")]
    DirectiveValue,
    /// `$patch` holds an unknown word.
    #[error("unknown patch type: {directive} in map: {map}")]
    UnknownDirective {
        /// The word.
        directive: String,
        /// The map around it, as Go prints it.
        map: String,
    },
    /// `$patch: merge` in a list element.
    #[error("merging lists cannot yet be specified in the patch")]
    MergeDirective,
    /// A malformed `$deleteFromPrimitiveList/…`.
    #[error("invalid patch format of primitive list")]
    DeletionList,
    /// A malformed `$retainKeys`, or a field that it does not name.
    #[error("invalid patch format of retainKeys")]
    RetainKeys,
    /// A malformed `$setElementOrder/…`.
    #[error("invalid patch format of setElementOrder list")]
    ElementOrder,
    /// The elements of a patched list come in another order than `$setElementOrder/…` says.
    #[error("The order in patch list:\n{list}\n doesn't match $setElementOrder list:\n{order}\n")]
    OrderMismatch {
        /// The list, as Go prints it.
        list: String,
        /// The order, as Go prints it.
        order: String,
    },
    /// A patch of a custom resource that would change what the object is.
    #[error("precondition failed for: {patch}")]
    IdentityChange {
        /// The patch, as Go prints it.
        patch: String,
    },
}
