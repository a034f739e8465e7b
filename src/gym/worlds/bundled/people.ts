// Names of people from many parts of the world; a person's given and family names come from the same part.
import { random } from "../../../random.ts";

const PARTS: readonly (readonly [given: string, family: string])[] = [
  [
    "Ana Beatriz Carlos Diego Elena Javier Lucía Mateo Pilar Sofía",
    "Aguilar Castro Delgado Herrera Molina Navarro Ortega Ruiz Salinas Vega",
  ],
  [
    "Astrid Erik Freja Gustav Ingrid Lars Linnea Mats Nils Sigrid",
    "Berg Dahl Ekström Holm Lindqvist Lund Nyström Sandberg Solberg Strand",
  ],
  [
    "Aisha Farid Hana Karim Layla Nadia Omar Rania Samir Yusuf",
    "Abbas Farouk Haddad Jaber Khalil Mansour Nasser Rahman Saleh Zaki",
  ],
  [
    "Aiko Daichi Haruka Hiroshi Kenji Mei Naoko Ren Sakura Yuki",
    "Fujita Hayashi Inoue Kato Mori Nakamura Okada Sato Tanaka Watanabe",
  ],
  [
    "Amara Chidi Emeka Funmi Ifeoma Kofi Kwame Ngozi Tunde Zainab",
    "Adeyemi Balogun Danso Eze Mensah Nwosu Obi Okafor Owusu Sowande",
  ],
  [
    "Anjali Arjun Deepa Kavya Meera Nikhil Priya Rahul Rohan Vikram",
    "Bhatt Chopra Desai Iyer Kapoor Menon Nair Patel Reddy Sharma",
  ],
  [
    "Alice Benjamin Charlotte Daniel Emily George Hannah Oliver Rose Thomas",
    "Ashworth Bennett Clarke Fletcher Hughes Marsh Palmer Quinn Turner Whitfield",
  ],
  [
    "Agnieszka Bartek Dorota Jan Kasia Marek Ola Piotr Tomasz Zofia",
    "Bąk Dudek Kaczmarek Kowal Krawczyk Mazur Nowak Pawlak Sikora Wójcik",
  ],
  [
    "Camille Élodie Étienne Hugo Julien Louise Margaux Noé Pauline Rémi",
    "Bernard Chevalier Dubois Fournier Girard Laurent Moreau Picard Rousseau Vidal",
  ],
  [
    "Anton Darya Galina Igor Irina Ksenia Lev Mikhail Oksana Yuri",
    "Antonenko Bondar Fedorenko Kovalenko Kravets Melnyk Moroz Petrenko Savchuk Shevchuk",
  ],
  ["Chen Fang Hui Jing Lei Ming Qiang Wei Xia Yan", "Cai Feng Gao Huang Lin Shen Sun Wang Zhao Zhou"],
  [
    "Alessia Chiara Davide Francesca Giulia Lorenzo Marco Matteo Paolo Serena",
    "Bianchi Conti De Luca Ferrari Galli Marino Rinaldi Russo Santoro Villa",
  ],
  [
    "Ayşe Burak Cem Deniz Elif Emre Fatma Kerem Selin Zeynep",
    "Arslan Aydın Çelik Demir Kaya Öztürk Polat Şahin Yıldız Yılmaz",
  ],
  [
    "Anna Felix Greta Hannes Johanna Jonas Katrin Lukas Miriam Tobias",
    "Becker Fischer Hoffmann Keller Lang Schäfer Seidel Vogel Weber Zimmermann",
  ],
];

/** Returns `count` different full names; the same key gives the same names. */
export function people(key: string, count: number): string[] {
  const r = random("people", key);
  const names = PARTS.flatMap(([given, family]) => {
    const families = r.shuffle(family.replace("De Luca", "De_Luca").split(" "));
    return given.split(" ").map((name, i) => `${name} ${families[i % families.length]!.replace("_", " ")}`);
  });
  return r.sample(names, count);
}
