// What columns with personal data are called, and what their values look like.

/** Kinds of personal data by column name and by value. */
export const PERSONAL: readonly { readonly what: string; readonly name: RegExp; readonly value?: RegExp }[] = [
  { what: "email addresses", name: /\be-?mail\b/, value: /^[^\s@]+@[^\s@]+\.[a-z]{2,}$/i },
  {
    what: "phone numbers",
    name: /\b(?:phone|telephone|mobile|cell|fax)\b/,
    value: /^\+?\d{0,3}[ .-]?\(?\d{3}\)?[ .-]\d{3}[ .-]\d{4}\b/,
  },
  {
    what: "identity numbers",
    name: /\b(?:ssn|social security|passport|national id|tax id|nin|iban)\b/,
    value: /^\d{3}-\d{2}-\d{4}$/,
  },
  { what: "card numbers", name: /\b(?:card number|credit card|cvv|cvc)\b/ },
  { what: "dates of birth", name: /\b(?:birth ?(?:date|day)|date of birth|dob)\b/ },
  { what: "street addresses", name: /\b(?:street|address|zip ?code|postcode|postal code)\b/ },
  { what: "passwords", name: /\b(?:password|passwd|pwd|secret)\b/ },
  { what: "names of people", name: /\b(?:first|last|middle|full|given|family) name\b|\bsurname\b/ },
  { what: "network addresses", name: /\bIP\b|\bip address\b/, value: /^\d{1,3}(?:\.\d{1,3}){3}$/ },
];
